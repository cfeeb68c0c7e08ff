package board

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster"
	"muster/journal"
)

// This file repairs what other programs, which know none of our rules, have written into the tasks.

// acceptForeign records that another program completed the task, and writes the event if this call recorded
// it. The change also names the effects of a completion, so the tasks that wait for it are unblocked.
func (r repair) acceptForeign(ctx context.Context, id muster.TaskID) error {
	t, _, noted, err := r.step(ctx, id, func(t *muster.Task) error { return acceptForeign(t, now()) })
	if !noted {
		return err
	}
	return r.emit(ctx, event(journal.TaskForeign, t, t.Owner,
		map[string]any{"text": "another program completed it: not landed by us"}))
}

// restoreStatus makes a task pending again that another program left in a state in which nobody could ever
// claim it. It revokes the claim before it raises the fence, so that a landing under way cannot finish for
// the old owner.
func (r repair) restoreStatus(ctx context.Context, id muster.TaskID) error {
	t, _, err := r.read(ctx, id)
	if err != nil || !isInconsistent(t) {
		return err
	}
	if _, err := r.revokeLanding(ctx, t); err != nil {
		return err
	}
	// The write holds for the claim that was revoked only: a newer one is whole, or the next Settle repairs
	// it.
	fence := t.Fence
	t, was, restored, err := r.step(ctx, id, func(t *muster.Task) error {
		if !isInconsistent(*t) || t.Fence != fence {
			return errNoChange
		}
		return revoke(t, fence, now())
	})
	if !restored {
		return err
	}
	return r.emit(ctx, event(journal.TaskForeign, t, was.Owner,
		map[string]any{"text": "another program put it back on the board"}))
}

// removeMarked deletes a task that another program marked as deleted, in the order of Delete: the claim is
// revoked, the id is retired, the task goes, and then the edges to it.
func (r repair) removeMarked(ctx context.Context, id muster.TaskID) error {
	t, rev, err := r.tasks.Get(ctx, key(id))
	if err != nil {
		return ignoreVanished(err)
	}
	if t.Status != deleted {
		return nil
	}
	if t.Fence > 0 {
		if _, err := r.revokeLanding(ctx, t); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, t, rev, ""); !errors.Is(err, muster.ErrStale) && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	return nil // somebody changed it: the next Settle sees it again
}

// parkCycle sets the tasks of a cycle aside: they wait for each other, so nobody could ever claim one.
func (r repair) parkCycle(ctx context.Context, cycle []muster.TaskID) error {
	why := fmt.Sprintf("waits for itself: %s", arrows(append(slices.Clone(cycle), cycle[0])))
	for i, id := range cycle {
		next := cycle[(i+1)%len(cycle)]
		// Each write checks that the edge is still there. If somebody has broken the cycle meanwhile, the
		// rest stays.
		t, _, parked, err := r.step(ctx, id, func(t *muster.Task) error {
			if t.Status != muster.Pending || t.Owner != "" || !slices.Contains(t.DependsOn, next) {
				return errNoChange
			}
			giveUp(t, why, now())
			return nil
		})
		if parked {
			if err = r.emit(ctx, attentionEvent(t, "")); err == nil {
				_, _, err = r.effects.run(ctx, t)
				err = onlyUnavailable(err)
			}
		}
		if ignoreVanished(err) != nil {
			return err
		}
	}
	return nil
}
