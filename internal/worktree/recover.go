package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/testing/failpoint"
	"muster/journal"
)

// Recover finishes or undoes what a crash left half done, row by row of the index, and takes lanes in that git has and
// the index lacks. What other processes are just making is left alone. A lane that cannot be removed as its row says is told of and stays.
func (l *Lanes) Recover(ctx context.Context) error {
	x, err := l.read(ctx)
	if err != nil {
		return err
	}
	if err := l.sweep(ctx); err != nil {
		return err
	}
	if _, err := l.ClearOutside(); err != nil {
		return err
	}
	// The refs below are the runtime's own, moved in an instant each: a lock that stays is a killed git's.
	if err := l.repo.BreakLocks(ctx, "refs/muster"); err != nil {
		return err
	}
	for name := range x.rows {
		lane, ok, err := x.lane(muster.Name(name))
		if !ok || err != nil {
			continue // another program's row, in a form that we do not know
		}
		if err := l.recoverLane(ctx, l.resolved(lane)); err != nil {
			return err
		}
	}
	return l.adopt(ctx)
}

// sweep removes the temporary files of killed writers. Under the lock there are no living ones.
func (l *Lanes) sweep(ctx context.Context) error {
	unlock, err := l.files.Lock(ctx, l.lock())
	if err != nil {
		return err
	}
	defer unlock()
	all, err := l.files.FS().ReadDir(l.dir.Worktrees())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "the lanes' directory cannot be read: %w", err)
	}
	for _, e := range all {
		if e.Type().IsRegular() && durable.IsTemporary(e.Name()) {
			if err := l.files.Remove(filepath.Join(l.dir.Worktrees(), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastBreath is how long the git of a killed process may take to end after it.
const lastBreath = 150 * time.Millisecond

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (l *Lanes) recoverLane(ctx context.Context, lane muster.Lane) error {
	var r removal
	switch {
	case lane.Status == muster.LaneCreating:
		return l.recoverCreating(ctx, lane)
	case field(lane, fieldRemoving, &r):
		if err := wait(ctx, lastBreath); err != nil {
			return err
		}
		if err := l.repo.BreakLock(ctx, branchRef(lane)); err != nil {
			return err
		}
		err := l.finishRemoval(ctx, lane, r.Ref)
		if ctx.Err() == nil && (errors.Is(err, muster.ErrHeld) || errors.Is(err, muster.ErrInvalid)) {
			// The lane stays, marked; what holds it (a user's git worktree lock) is no reason to stop the others.
			return l.tell(ctx, journal.LaneFailed, "worktree.remove.failed", lane, "", err)
		}
		return err
	case lane.Status == muster.LaneFailed:
		return nil
	case !gone(lane.Path):
		return l.unlock(ctx, lane)
	}
	// Its directory is gone. While the branch is there, its commits are; without it nothing is left of the lane.
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil {
		return err
	}
	if tip == "" {
		if _, err := l.drop(ctx, lane.Name); err != nil {
			return err
		}
		return l.tell(ctx, journal.LaneRemoved, "worktree.remove.after", lane, "", nil)
	}
	lane, err = l.change(ctx, lane.Name, func(row *muster.Lane) error {
		row.Status = muster.LaneFailed
		return nil
	})
	if err != nil {
		return ignoreAbsent(err)
	}
	return l.tell(ctx, journal.LaneFailed, "", lane, "", muster.Errorf(muster.NotFound, "its directory %s is gone", lane.Path))
}

// unlock removes the locks that a killed git left in a lane, so that its next owner can commit.
func (l *Lanes) unlock(ctx context.Context, lane muster.Lane) error {
	if err := l.repo.BreakLock(ctx, branchRef(lane)); err != nil {
		return err
	}
	return l.repo.AwaitWorktreeLock(ctx, lane.Path)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	return err
}

// recoverCreating undoes a lane whose maker died. One that is being made right now is left alone.
func (l *Lanes) recoverCreating(ctx context.Context, lane muster.Lane) error {
	var maker string
	if !field(lane, fieldMaker, &maker) {
		return l.undo(ctx, lane)
	}
	// A child that the maker was just starting when it died has its lease for another instant.
	var free func() error
	for end := time.Now().Add(2 * lastBreath); ; {
		var err error
		if free, err = l.tryLease(maker); err == nil {
			break
		}
		if !errors.Is(err, muster.ErrHeld) {
			return err
		}
		if time.Now().After(end) {
			return nil // its maker lives; or the lease has a new holder, who clears this up before it makes its own
		}
		if err := wait(ctx, lastBreath/10); err != nil {
			return err
		}
	}
	defer free()
	return l.undoOf(ctx, lane.Name, maker)
}

// clearDead undoes what dead makers left: those of the lease that we now hold, and the maker of this name's row.
func (l *Lanes) clearDead(ctx context.Context, name muster.Name, lease string) error {
	x, err := l.read(ctx)
	if err != nil {
		return err
	}
	for key := range x.rows {
		row, ok, err := x.lane(muster.Name(key))
		if !ok || err != nil || row.Status != muster.LaneCreating {
			continue
		}
		var maker string
		field(row, fieldMaker, &maker)
		switch {
		case maker == lease:
			err = l.undoOf(ctx, row.Name, lease)
		case row.Name == name:
			err = l.recoverCreating(ctx, l.resolved(row))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// undoOf undoes the row if it is still that maker's. The caller holds the maker's lease.
func (l *Lanes) undoOf(ctx context.Context, name muster.Name, maker string) error {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return ignoreAbsent(err)
	}
	var now string
	if field(lane, fieldMaker, &now); lane.Status != muster.LaneCreating || now != maker {
		return nil
	}
	if err := wait(ctx, lastBreath); err != nil {
		return err
	}
	if err := l.repo.BreakLock(ctx, branchRef(lane)); err != nil {
		return err
	}
	return l.undo(ctx, lane)
}

// undo takes back a lane that was never handed out: its worktree, its branch if that is still at its base, its row. What
// is not as it was made is kept, and the row says failed.
func (l *Lanes) undo(ctx context.Context, lane muster.Lane) error {
	err := l.repo.UndoWorktree(ctx, lane.Path)
	failpoint.Point("lane.undone")
	if err == nil && lane.Base != "" {
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), Old: lane.Base}})
		if errors.Is(err, muster.ErrStale) {
			var at string
			if at, err = l.repo.Ref(ctx, branchRef(lane)); err == nil && at != "" {
				err = muster.Errorf(muster.Held, "the branch %s has moved", lane.Branch)
			}
		}
	}
	if err == nil {
		failpoint.Point("lane.unbranched")
		_, err = l.drop(ctx, lane.Name)
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	cause := muster.Errorf(muster.Held, "cannot verify that the half-made lane %s has nothing to lose, so it is kept: %w", lane.Name, err)
	if lane, err = l.change(ctx, lane.Name, func(row *muster.Lane) error {
		row.Status = muster.LaneFailed
		clearField(row, fieldMaker)
		return nil
	}); err != nil {
		return ignoreAbsent(err)
	}
	return l.tell(ctx, journal.LaneFailed, "worktree.create.failed", lane, "", cause)
}

// adopt takes in worktrees that lie where lanes lie, on a branch wt/NAME, and have no row.
func (l *Lanes) adopt(ctx context.Context) error {
	x, err := l.read(ctx)
	if err != nil {
		return err
	}
	missing, err := l.lacking(ctx, x)
	if err != nil || len(missing) == 0 {
		return err
	}
	return l.edit(ctx, func(x *index) error {
		for _, lane := range missing {
			if _, has := x.rows[string(lane.Name)]; has {
				continue
			}
			if err := x.put(lane); err != nil {
				return err
			}
		}
		return nil
	})
}

// lacking are the lanes that git has and the index does not.
func (l *Lanes) lacking(ctx context.Context, x *index) (out []muster.Lane, err error) {
	found, err := l.listed(ctx)
	for _, lane := range found {
		if _, has := x.rows[string(lane.Name)]; !has {
			out = append(out, lane)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, l.remember(ctx, out)
}
