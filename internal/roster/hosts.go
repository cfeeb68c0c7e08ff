package roster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/corruption"
)

// Process is one process that hosts members: the document of the slot whose lease it holds. It is alive as long as the
// lease is held and the document has its life; everything else in it is for people.
type Process struct {
	Slot     string  `json:"slot"` // host-1, host-2, ...: the lease's name
	Life     int     `json:"life"` // how often the slot was taken
	PID      int     `json:"pid"`
	About    string  `json:"about,omitempty"`
	GuardPID int     `json:"guard_pid,omitempty"`
	Since    float64 `json:"since"`
}

// ID names this life of this process.
func (p Process) ID() muster.HostID { return muster.HostID(fmt.Sprintf("%s.%d", p.Slot, p.Life)) }

// Host is this process, as the roster knows it.
type Host struct {
	hosts muster.Table
	lease muster.Lease
	doc   Process
}

// Join makes this process a host: it takes the first free slot. about says for people what the process is.
func (r *Roster) Join(ctx context.Context, about string) (*Host, error) {
	for n := 1; ; n++ {
		slot := fmt.Sprintf("host-%d", n)
		lease, err := r.leases.Acquire(ctx, slot)
		if errors.Is(err, muster.ErrHeld) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h, err := r.settleIn(ctx, slot, lease, about)
		if err == nil {
			return h, nil
		}
		if err := errors.Join(err, lease.Release()); !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		} // which life of the slot this would be is not known: the next one
	}
}

func (r *Roster) settleIn(ctx context.Context, slot string, lease muster.Lease, about string) (*Host, error) {
	old, rev, err := readProcess(ctx, r.hosts, slot)
	if errors.Is(err, muster.ErrCorrupt) {
		return nil, errors.Join(err, r.teller.Tell(ctx, damaged(slot, rev, err)))
	}
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return nil, err
	}
	h := &Host{r.hosts, lease, Process{Slot: slot, Life: old.Life + 1, PID: os.Getpid(), About: about, Since: muster.Stamp(time.Now())}}
	return h, h.write(ctx, rev)
}

func (h *Host) write(ctx context.Context, at muster.Rev) error {
	data, err := muster.Encode(h.doc)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the host %s cannot be written: %w", h.doc.Slot, err)
	}
	_, err = h.hosts.Put(ctx, h.doc.Slot, data, at)
	return err
}

// ID names this life of this process.
func (h *Host) ID() muster.HostID { return h.doc.ID() }

// Lost is closed when the process no longer counts as alive.
func (h *Host) Lost() <-chan struct{} { return h.lease.Lost() }

// SetGuard notes which process guards the host's tools.
func (h *Host) SetGuard(ctx context.Context, pid int) error {
	for {
		now, rev, err := readProcess(ctx, h.hosts, h.doc.Slot)
		if err != nil {
			return err
		}
		if now.Life != h.doc.Life {
			return muster.Errorf(muster.Fenced, "%s is no longer this process", h.doc.Slot)
		}
		h.doc.GuardPID = pid
		if err := h.write(ctx, rev); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// Release ends the life: members that it still hosts can be taken over at once.
func (h *Host) Release() error { return h.lease.Release() }

// Alive reports whether that life of that process goes on.
func (r *Roster) Alive(ctx context.Context, id muster.HostID) (bool, error) {
	slot, life, ok := cutID(id)
	if !ok {
		return false, nil
	}
	held, err := r.leases.Held(ctx, slot)
	if err != nil || !held {
		return false, err
	}
	p, _, err := readProcess(ctx, r.hosts, slot)
	if errors.Is(err, muster.ErrNotFound) {
		return false, nil
	}
	if errors.Is(err, muster.ErrCorrupt) {
		return true, nil // somebody lives there, and which life it is nobody can say: nothing is taken from the living
	}
	return err == nil && p.Life == life, err
}

// Hosts are the living processes, by slot. A slot whose document cannot be read is left out, and said once.
func (r *Roster) Hosts(ctx context.Context) ([]Process, error) {
	var all []Process
	var doubtful []string
	for c, err := range r.hosts.Changes(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		var p Process
		if err != nil || json.Unmarshal(c.Data, &p) != nil {
			doubtful = append(doubtful, c.Key)
			continue
		}
		if c.Rev == muster.None || p.Slot != c.Key {
			continue
		}
		held, err := r.leases.Held(ctx, p.Slot)
		if err != nil {
			return nil, err
		}
		if held {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { // host-2 before host-10
		return cmp.Or(cmp.Compare(len(a.Slot), len(b.Slot)), cmp.Compare(a.Slot, b.Slot))
	})
	return all, r.doubt(ctx, doubtful)
}

// doubt says which slots cannot be read, after a second look.
func (r *Roster) doubt(ctx context.Context, slots []string) error {
	var bad []corruption.Record
	err := corruption.Again(ctx, r.hosts, slots, func(d muster.Doc, err error) {
		if err == nil && d.Rev != muster.None {
			err = json.Unmarshal(d.Data, &Process{})
		}
		if err != nil {
			bad = append(bad, damaged(d.Key, d.Rev, err))
		}
	})
	if err != nil {
		return err
	}
	return r.teller.Tell(ctx, bad...)
}

// MendHosts writes the documents of slots anew that cannot be read and that nobody lives in, and returns the slots. What
// they were is kept. The life goes on far above every one that there was: no member of an old life is taken for one of
// a new.
func (r *Roster) MendHosts(ctx context.Context) (slots []string, err error) {
	for c, bad := range r.hosts.Changes(ctx, 0) {
		if bad == nil && c.Rev != muster.None {
			bad = json.Unmarshal(c.Data, &Process{})
		}
		if bad == nil {
			continue
		}
		mended, err := r.mendHost(ctx, c.Key)
		if err != nil {
			return slots, err
		}
		if mended {
			slots = append(slots, c.Key)
		}
	}
	return slots, nil
}

func (r *Roster) mendHost(ctx context.Context, slot string) (bool, error) {
	lease, err := r.leases.Acquire(ctx, slot)
	if errors.Is(err, muster.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lease.Release()
	d, err := r.hosts.Get(ctx, slot)
	if err == nil {
		err = json.Unmarshal(d.Data, &Process{})
	}
	if err == nil || errors.Is(err, muster.ErrNotFound) {
		return false, nil
	}
	if errors.Is(err, muster.ErrUnavailable) {
		return false, err
	}
	if _, err := corruption.Keep(ctx, r.kept, muster.TableHosts, d, err); err != nil {
		return false, err
	}
	now := time.Now()
	h := Host{hosts: r.hosts, doc: Process{Slot: slot, Life: int(now.Unix()), Since: muster.Stamp(now)}}
	return true, h.write(ctx, d.Rev)
}

// Where says for people which process the host is.
func (r *Roster) Where(ctx context.Context, id muster.HostID) string {
	slot, life, ok := cutID(id)
	if !ok {
		return string(id)
	}
	p, _, err := readProcess(ctx, r.hosts, slot)
	switch {
	case err != nil || p.Life != life:
		return string(id)
	case p.About == "":
		return fmt.Sprintf("pid %d", p.PID)
	}
	return fmt.Sprintf("%s, pid %d", p.About, p.PID)
}

func readProcess(ctx context.Context, hosts muster.Table, slot string) (Process, muster.Rev, error) {
	d, err := hosts.Get(ctx, slot)
	if err != nil {
		return Process{}, d.Rev, err
	}
	var p Process
	if err := json.Unmarshal(d.Data, &p); err != nil {
		return p, d.Rev, muster.Errorf(muster.Corrupt, "the host %s cannot be read: %w", slot, err)
	}
	return p, d.Rev, nil
}

func damaged(slot string, rev muster.Rev, why error) corruption.Record {
	return corruption.Record{Table: muster.TableHosts, Key: slot, Rev: rev, Text: why.Error(),
		Done: "nobody can live in that slot until muster doctor --repair"}
}

// cutID takes host-1.3 apart.
func cutID(id muster.HostID) (slot string, life int, ok bool) {
	i := strings.LastIndexByte(string(id), '.')
	if i < 1 {
		return "", 0, false
	}
	life, err := strconv.Atoi(string(id[i+1:]))
	return string(id[:i]), life, err == nil
}
