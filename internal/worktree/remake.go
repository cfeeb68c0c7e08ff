package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
)

// remake replaces an index whose bytes cannot be read: they are kept, the rows before the damage stay, and the others
// are found again from git and from the events. Nil when the caller may read again.
func (l *Lanes) remake(ctx context.Context, bad []byte) error {
	found, err := l.found(ctx) // before the lock: no git runs under it
	if err != nil {
		return err
	}
	unlock, err := l.files.Lock(ctx, l.lock())
	if err != nil {
		return err
	}
	defer unlock()
	_, data, why := l.load(ctx)
	if !errors.Is(why, muster.ErrCorrupt) || !bytes.Equal(data, bad) {
		return nil // somebody was faster
	}
	x := salvage(data)
	for _, lane := range found {
		if _, has := x.rows[string(lane.Name)]; has {
			continue
		}
		if err := x.put(lane); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(data)
	rev := hex.EncodeToString(sum[:16])
	kept := filepath.Join(l.dir.Team(), corruption.Table, "index.json."+rev[:8])
	if err := l.files.Create(kept, data); err != nil && !errors.Is(err, muster.ErrStale) {
		return err
	}
	next, err := x.encode()
	if err != nil {
		return muster.Errorf(muster.Invalid, "the lanes' index cannot be written: %w", err)
	}
	// Told first: when it has been replaced nobody sees any more that it was damaged.
	if err := l.teller.Tell(ctx, corruption.Record{Table: corruption.Lanes, Key: "index", Rev: muster.Rev(rev), Text: why.Error(),
		Done: fmt.Sprintf("it is kept as %s/%s, and its %d lanes were found again from git", corruption.Table, filepath.Base(kept), len(x.rows))}); err != nil {
		return err
	}
	return l.files.Replace(l.dir.Index(), next)
}

// salvage is what can be read of an index before the damage.
func salvage(data []byte) *index {
	x := &index{top: map[string]json.RawMessage{}, rows: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(data))
	fields(d, func(key string) bool {
		if key == "worktrees" {
			return fields(d, func(name string) bool { return whole(d, x.rows, name) })
		}
		return whole(d, x.top, key)
	})
	return x
}

// fields calls f at each key of the object that comes next, until f fails or the object ends.
func fields(d *json.Decoder, f func(key string) bool) bool {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok || !f(name) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// whole takes the value that comes next, if all of it is there.
func whole(d *json.Decoder, into map[string]json.RawMessage, key string) bool {
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return false
	}
	into[key] = raw
	return true
}

// found are the lanes that git has, with what the events say of them.
func (l *Lanes) found(ctx context.Context) ([]muster.Lane, error) {
	lanes, err := l.listed(ctx)
	if err != nil {
		return nil, err
	}
	return lanes, l.remember(ctx, lanes)
}

// listed are the lanes that git has: worktrees that lie where lanes lie, on a branch wt/NAME. What they were made from is
// not known, so nothing removes them as "unchanged".
func (l *Lanes) listed(ctx context.Context) ([]muster.Lane, error) {
	all, err := l.repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	var lanes []muster.Lane
	for _, w := range all {
		name := muster.Name(filepath.Base(w.Path))
		if w.Prunable || filepath.Dir(w.Path) != l.place || muster.CheckName(name) != nil || w.Branch != "refs/heads/wt/"+string(name) {
			continue
		}
		lanes = append(lanes, muster.Lane{Name: name, Path: w.Path, Branch: strings.TrimPrefix(w.Branch, "refs/heads/"),
			Status: muster.LaneActive, CreatedAt: muster.Stamp(time.Now())})
	}
	return lanes, nil
}

// remember gives lanes that were found again the task and the keeping that the events tell of.
func (l *Lanes) remember(ctx context.Context, lanes []muster.Lane) error {
	if len(lanes) == 0 {
		return nil
	}
	at := map[string]*muster.Lane{}
	for i := range lanes {
		at[string(lanes[i].Name)] = &lanes[i]
	}
	for e, err := range l.journal.Read(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		lane := at[e.Text("lane")]
		if err != nil || lane == nil {
			continue
		}
		switch e.Kind {
		case journal.LaneCreated:
			lane.TaskID, lane.Status, lane.CreatedAt = e.Task, muster.LaneActive, e.At
		case journal.LaneKept:
			lane.Status = muster.LaneKept
		}
	}
	return nil
}
