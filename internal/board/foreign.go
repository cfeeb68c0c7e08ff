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

// acceptForeign takes note of a completion that another program wrote.
func (b *Board) acceptForeign(ctx context.Context, id muster.TaskID) error {
	noted := false
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		err := acceptForeign(t, now())
		noted = err == nil
		return err
	})
	if err != nil || !noted {
		return err
	}
	return b.emit(ctx, event(journal.TaskForeign, t, t.Owner,
		map[string]any{"text": "another program completed it: not landed by us"}))
}

// restoreStatus frees a task that another program left where nobody could ever claim it.
func (b *Board) restoreStatus(ctx context.Context, id muster.TaskID) error {
	t, _, err := b.read(ctx, id)
	if err != nil || !isInconsistent(t) {
		return err
	}
	if f := b.revoker(); f != nil {
		if err := f(ctx, t); err != nil {
			return err
		}
	}
	fence, was := t.Fence, t.Owner
	t, err = b.change(ctx, id, func(t *muster.Task) error {
		if !isInconsistent(*t) || t.Fence != fence {
			return errNoChange
		}
		free(t, muster.Pending, now())
		t.Fence++
		return nil
	})
	if err != nil || t.Fence == fence {
		return err
	}
	return b.emit(ctx, event(journal.TaskForeign, t, was,
		map[string]any{"text": "another program put it back on the board"}))
}

// removeMarked removes a task that another program marked as deleted.
func (b *Board) removeMarked(ctx context.Context, id muster.TaskID) error {
	t, rev, err := b.tasks.Get(ctx, key(id))
	if err != nil {
		return ignoreVanished(err)
	}
	if t.Status != deleted {
		return nil
	}
	if f := b.revoker(); f != nil && t.Fence > 0 {
		if err := f(ctx, t); err != nil {
			return err
		}
	}
	if err := b.raiseNextID(ctx, id); err != nil {
		return err
	}
	if err := b.tasks.Delete(ctx, key(id), rev); err != nil {
		if errors.Is(err, muster.ErrStale) || errors.Is(err, muster.ErrNotFound) {
			return nil // somebody changed it: the next Settle sees it again
		}
		return err
	}
	t.UpdatedAt = now()
	down := b.emit(ctx, event(journal.TaskDeleted, t, "", map[string]any{"subject": t.Subject}))
	return firstError(down, b.dropEdgesTo(ctx, id))
}

// parkCycle sets the tasks of a cycle aside: they wait for each other, so nobody could ever claim one.
func (b *Board) parkCycle(ctx context.Context, cycle []muster.TaskID) error {
	why := fmt.Sprintf("waits for itself: %s", arrows(append(slices.Clone(cycle), cycle[0])))
	for i, id := range cycle {
		next := cycle[(i+1)%len(cycle)]
		parked := false
		t, err := b.change(ctx, id, func(t *muster.Task) error {
			parked = t.Status == muster.Pending && t.Owner == "" && slices.Contains(t.DependsOn, next)
			if !parked {
				return errNoChange
			}
			giveUp(t, why, now())
			return nil
		})
		if ignoreVanished(err) != nil {
			return err
		}
		if err != nil || !parked {
			continue
		}
		if err := b.emit(ctx, attentionEvent(t, "")); err != nil {
			return err
		}
		if _, _, err := b.runEffects(ctx, t); onlyUnavailable(err) != nil {
			return err
		}
	}
	return nil
}
