package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/state"
)

// HostRecord is one process that hosts members: the document of the slot whose lease it holds. It is alive as
// long as the lease is held and the document has its life; everything else in it is for people.
type HostRecord struct {
	Slot  string `json:"slot"` // host-1, host-2, ...: the lease's name
	Life  int    `json:"life"` // how often the slot was taken
	PID   int    `json:"pid"`
	About string `json:"about,omitempty"`
	// Started tells the process from a later one with its number (see proc.StartTime). It is 0 when the process has
	// ended all that it had started.
	Started uint64  `json:"started,omitempty"`
	Since   float64 `json:"since"`
}

// ID names this life of this process.
func (p HostRecord) ID() muster.HostID { return muster.HostID(fmt.Sprintf("%s.%d", p.Slot, p.Life)) }

// Host is this process, as the roster knows it. Its members name it in their records, so a member whose
// host has ended can be taken over by another.
type Host struct {
	// Lease is that of the slot. Lost is closed when the process no longer counts as alive. Release ends the life:
	// members that it still hosts can be taken over at once.
	muster.Lease
	hosts *state.Collection[HostRecord]
	doc   HostRecord // as it was written when this life began
}

// decodeHost and encodeHost read and write the document of a slot.
var decodeHost, encodeHost = state.JSON("the host %s", func(p *HostRecord, slot string) { p.Slot = slot })

// Join makes this process a host: it takes the first free slot. about says for people what the process is.
func (r *Roster) Join(ctx context.Context, about string) (*Host, error) {
	for n := 1; ; n++ {
		slot := fmt.Sprintf("%s%d", muster.HostLeases, n)
		lease, err := r.leases.Acquire(ctx, slot)
		if errors.Is(err, muster.ErrHeld) {
			continue // another living process has the slot
		}
		if err != nil {
			return nil, err
		}
		h, err := r.beginLife(ctx, slot, lease, about)
		if err == nil {
			return h, nil
		}
		if err := errors.Join(err, lease.Release()); !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		// Something that is no file, or belongs to another user, is where the document would be.
	}
}

// beginLife writes the document of a slot whose lease this process holds, with a life that is one more than
// the last. Members of the last life can be told from those of this one, so they are taken over. The lease
// is held before the document is read and written, so no two processes begin the same life.
func (r *Roster) beginLife(ctx context.Context, slot string, lease muster.Lease, about string) (*Host, error) {
	old, rev, err := r.hosts.Get(ctx, slot)
	if errors.Is(err, muster.ErrCorrupt) {
		// The last life is not known. A Unix time is far above every life that there was.
		old.Life = int(time.Now().Unix())
		err = r.keepDamaged(ctx, r.hostTable, muster.TableHosts, slot, err)
	}
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return nil, err
	}
	h := &Host{lease, r.hosts, HostRecord{
		Slot: slot, Life: old.Life + 1, PID: os.Getpid(), Started: proc.StartTime(os.Getpid()), About: about,
		Since: muster.UnixTime(time.Now())}}
	_, err = r.hosts.Put(ctx, slot, h.doc, rev)
	return h, err
}

// ID names this life of this process.
func (h *Host) ID() muster.HostID { return h.doc.ID() }

// SetEnded notes that nothing runs any more that this process has started. Errors: Fenced when another process has the
// slot by now.
func (h *Host) SetEnded(ctx context.Context) error {
	_, err := h.hosts.Update(ctx, h.doc.Slot, func(p *HostRecord) error {
		if p.Life != h.doc.Life {
			return muster.Errorf(muster.Fenced, "%s is no longer this process", h.doc.Slot)
		}
		p.Started = 0
		return nil
	})
	return err
}

// EndTools kills what hosts that have died have left of their tools, and returns how many processes that were. Tools
// end with their host, unless somebody has killed its guard at the same moment.
func (r *Roster) EndTools(ctx context.Context) (killed int, err error) {
	all, err := r.hosts.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, h := range all {
		if h.Started == 0 {
			continue
		}
		// A life that has begun since the record was read has guards of its own, which this record does not name.
		held, err := r.leases.Held(ctx, h.Slot)
		if err != nil {
			return killed, err
		}
		if held {
			continue
		}
		killed += proc.KillAbandoned(h.PID, h.Started)
		// Noted after the kill: a crash in between looks for them once more.
		_, err = r.hosts.Update(ctx, h.Slot, func(p *HostRecord) error {
			if p.Life != h.Life {
				return state.ErrNoChange
			}
			p.Started = 0
			return nil
		})
		if err != nil {
			return killed, err
		}
	}
	return killed, nil
}

// Alive reports whether that life of that process goes on. It is alive exactly if the lease of its slot is
// held and the slot's document has its life. Between the two looks the process may end and another may take
// the slot: the document then has another life. An id that is no host's counts as dead.
func (r *Roster) Alive(ctx context.Context, id muster.HostID) (bool, error) {
	slot, life, ok := cutID(id)
	if !ok {
		return false, nil
	}
	held, err := r.leases.Held(ctx, slot)
	if err != nil || !held {
		return false, err
	}
	p, _, err := r.hosts.Get(ctx, slot)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return false, nil
	case errors.Is(err, muster.ErrCorrupt):
		return true, nil // the record is unreadable: assume that the host is alive, so that nothing is taken from it
	}
	return err == nil && p.Life == life, err
}

// Hosts returns the living processes, by slot. A slot whose document cannot be read is left out, and
// reported once.
func (r *Roster) Hosts(ctx context.Context) ([]HostRecord, error) {
	all, err := r.hosts.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p HostRecord) bool {
		// A document stays when its process ends; the lease does not.
		held, e := r.leases.Held(ctx, p.Slot)
		err = cmp.Or(err, e)
		return !held
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b HostRecord) int { // host-2 before host-10
		return cmp.Or(cmp.Compare(len(a.Slot), len(b.Slot)), cmp.Compare(a.Slot, b.Slot))
	})
	return all, nil
}

// Where describes the host for people: what the process is, and its pid. It returns the id when the host
// has ended.
func (r *Roster) Where(ctx context.Context, id muster.HostID) string {
	slot, life, ok := cutID(id)
	if !ok {
		return string(id)
	}
	p, _, err := r.hosts.Get(ctx, slot)
	switch {
	case err != nil || p.Life != life:
		return string(id)
	case p.About == "":
		return fmt.Sprintf("pid %d", p.PID)
	}
	return fmt.Sprintf("%s, pid %d", p.About, p.PID)
}

// cutID splits the id of a host, such as host-1.3, into the slot and the life. It returns false for other
// text, which another program may have written into a member's record.
func cutID(id muster.HostID) (slot string, life int, ok bool) {
	slot, number, _ := strings.Cut(string(id), ".")
	life, err := strconv.Atoi(number)
	return slot, life, err == nil && slot != ""
}
