package worktree

import (
	"context"
	"errors"
	"path/filepath"

	"muster"
)

// Other programs read the whole index, keep it in memory, and write the whole of it again much later. Rows that were
// made meanwhile vanish then, and others become what they were. A process that works in a lane must not stop because
// of that, so it compares each row that it reads with what it wrote last.

// overwritten reports whether another program has written an old row over one of this process's, or has dropped a row.
// err is that of reading the row.
//
// No process of the team does either: it removes the directory of a lane before the row, sets no lane back to creating,
// and takes a lane only from an occupant that is dead, as this process is not.
func (x *index) overwritten(row muster.Lane, err error, name muster.Name) bool {
	v, isOurs := x.written.Load(name)
	if errors.Is(err, muster.ErrNotFound) {
		// The file system answers, so a lane that is really gone costs no git.
		head, ok := x.repo.LinkedHead(filepath.Join(x.home, string(name)))
		return ok && (isOurs || head == "refs/heads/wt/"+string(name))
	}
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
