package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/internal/git"
	"muster/journal"
)

// rebuild replaces an index that cannot be read: its bytes are kept under .team/damaged, the rows before the damage
// stay, and the other lanes are those that were found. The caller holds the lock.
func (x *index) rebuild(ctx context.Context, doc *document, found []muster.Lane) error {
	// Salvaged rows win over found ones: they have the base, the keeping and the occupant, which git does not know.
	if err := doc.putMissing(found); err != nil {
		return err
	}
	// The name of the kept file follows from its content, so a crash and a repeat keep the same bytes once.
	sum := sha256.Sum256(doc.damaged)
	rev := hex.EncodeToString(sum[:16])
	kept := filepath.Join(x.dir.Team(), corruption.Table, "index.json."+rev[:8])
	if err := x.files.Create(kept, doc.damaged); err != nil && !errors.Is(err, muster.ErrStale) {
		return err // Stale: the same bytes are kept there already
	}
	// The damage is told before the index is replaced: afterwards nobody could see it any more.
	if err := x.corrupt.Tell(ctx, corruption.Record{
		Table: corruption.Lanes, Key: "index", Rev: muster.Rev(rev), Text: doc.damage.Error(),
		Done: fmt.Sprintf("it is kept as %s/%s, and its %d lanes were found again from git",
			corruption.Table, filepath.Base(kept), len(doc.rows)),
	}); err != nil {
		return err
	}
	doc.damage = nil
	return x.write(doc)
}

// salvage reads the part of an index before its damage, without the value that is cut off. What is below "worktrees"
// goes to rows, and the rest to fields. It reports whether the object was whole.
func salvage(d *json.Decoder, fields, rows map[string]json.RawMessage) bool {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for d.More() {
		t, err := d.Token()
		key, _ := t.(string)
		var raw json.RawMessage
		switch {
		case err != nil:
			return false
		case rows != nil && key == "worktrees":
			if !salvage(d, rows, nil) {
				return false
			}
		case d.Decode(&raw) != nil:
			return false
		default:
			fields[key] = raw
		}
	}
	_, err := d.Token()
	return err == nil
}

// missing returns the lanes that git has and the document lacks.
func (x *index) missing(ctx context.Context, doc *document) ([]muster.Lane, error) {
	worktrees, err := x.repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	var lanes []muster.Lane
	for _, w := range worktrees {
		// A lane lies in the lanes' directory and is on the branch wt/NAME; every other worktree is the user's.
		name := muster.Name(filepath.Base(w.Path))
		if !w.Prunable && filepath.Dir(w.Path) == x.home && muster.CheckName(name) == nil &&
			w.Branch == BranchPrefix+string(name) && !doc.has(name) {
			// The base stays empty: it is not known, so nothing may remove the lane as "unchanged".
			lanes = append(lanes, muster.Lane{Name: name, Path: w.Path, Branch: branchName + string(name),
				Status: muster.LaneActive, CreatedAt: muster.UnixTime(time.Now())})
		}
	}
	return lanes, x.restore(ctx, lanes)
}

// restore gives the lanes their task, their time and their status from the journal.
func (x *index) restore(ctx context.Context, lanes []muster.Lane) error {
	if len(lanes) == 0 {
		return nil
	}
	// The last event of a name counts: several lanes may have had it, one after the other.
	byName := map[string]*muster.Lane{}
	for i := range lanes {
		byName[string(lanes[i].Name)] = &lanes[i]
	}
	for e, err := range x.journal.Read(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		lane := byName[e.Text("lane")]
		// A line of the journal that cannot be read is passed over: the lane is worth more than its history.
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

// overwritten reports whether another program has written an old row over one of this process's, or has dropped a row:
// some keep the whole index in memory, and write it again much later. err is that of reading the row.
//
// No process of the team does either: it removes the directory of a lane before the row, sets no lane back to creating,
// and takes a lane only from an occupant that is dead, as this process is not.
func (x *index) overwritten(row muster.Lane, err error, name muster.Name) bool {
	if errors.Is(err, muster.ErrNotFound) {
		// The file system answers, so a lane that is really gone costs no git.
		return git.HasPlace(x.repo.CommonDir(), filepath.Join(x.home, string(name)))
	}
	v, isOurs := x.written.Load(name)
	if err != nil || !isOurs {
		return false
	}
	ours := v.(muster.Lane)
	if row.CreatedAt != ours.CreatedAt {
		return 0 < row.CreatedAt && row.CreatedAt < ours.CreatedAt // the row of an earlier lane of that name
	}
	occupant, isOccupied := x.occupied.Load(name)
	return row.Status == muster.LaneCreating && ours.Status != muster.LaneCreating ||
		isOccupied && OccupantOf(row) != occupant
}

// restoreRow writes the row again that this process wrote last, with its base and its occupant. Where this process
// wrote none it makes one of what git and the journal know.
func (x *index) restoreRow(ctx context.Context, name muster.Name) error {
	v, isOurs := x.written.Load(name)
	if !isOurs {
		return x.addMissing(ctx)
	}
	return x.edit(ctx, func(doc *document) error {
		row, err := doc.lane(name)
		if !x.overwritten(x.resolved(row), err, name) { // another goroutine has restored it
			return nil
		}
		ours := v.(muster.Lane)
		if occupant, ok := x.occupied.Load(name); ok {
			setField(&ours, fieldOccupant, occupant)
		}
		return doc.put(ours)
	})
}
