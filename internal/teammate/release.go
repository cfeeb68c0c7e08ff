package teammate

import (
	"context"
	"errors"

	"muster"
	"muster/internal/board"
)

// isLostClaim reports whether an error says that a claim is over: somebody took the task, or
// it was deleted.
func isLostClaim(err error) bool {
	return errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound)
}

// ignoreLostClaim drops an error that only says that somebody else was faster, or took the
// task.
func ignoreLostClaim(err error) error {
	if isLostClaim(err) || errors.Is(err, muster.ErrHeld) {
		return nil
	}
	return err
}

// Release gives the current task back for a tool call, because its owner cannot do it. It
// counts as an attempt. It is Held when the work has landed in the meantime.
func (c *claims) Release(ctx context.Context, id muster.TaskID, reason string) error {
	if t, ok := c.CurrentTask(); !ok || t.ID != id {
		return muster.Errorf(muster.Invalid, "task %d is not in your hand", id)
	}
	err := c.giveUp(ctx, board.Release{Reason: "cannot", Note: reason, Counts: true, By: c.name()})
	if err == nil || errors.Is(err, muster.ErrHeld) {
		c.endTask()
	}
	return err
}

// release releases the current task, if there is one; its lane is kept. Work that turns out
// to have landed is as good. The next owner reads the note; an attempt counts towards the
// limit after which the task needs attention.
func (c *claims) release(ctx context.Context, reason, note string, isAttempt bool) error {
	err := c.giveUp(ctx, board.Release{Reason: reason, Note: note, Counts: isAttempt, By: c.name()})
	if errors.Is(err, muster.ErrHeld) {
		return nil
	}
	return err
}

// giveUp releases the current task. It is Held when the work has landed. The order keeps the
// next owner alone in the lane: the member's commands are stopped, it leaves the lane, a
// landing that may still come is cancelled, and only then the task goes back to the board.
func (c *claims) giveUp(ctx context.Context, r board.Release) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	// The claim is forgotten whatever fails below: a member that is ending can do no more
	// about it, and one that lives on is not stuck with a task that it has begun to give
	// back.
	defer c.clearTask()
	c.jobs.Stop()
	c.lanes.leave(ctx, t.Worktree)
	if err := c.plans.cancel(ctx, t, "the task was given back"); err != nil {
		return err
	}
	if t.Worktree != "" {
		if err := c.Lanes.Release(ctx, t.Worktree); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
	}
	// A landing that nobody knows the state of must not land after the task went to the next
	// owner. Revoke is Held when it has landed: then the task is completed.
	now, err := c.Board.Get(ctx, t.ID)
	if err == nil && now.Status == muster.Landing && now.Fence == t.Fence {
		err = c.Lander.Revoke(ctx, t.ID, t.Fence)
	}
	if err == nil {
		_, err = c.Board.Release(ctx, t.ID, t.Fence, r)
	}
	if isLostClaim(err) { // taken from the member, or deleted: there is nothing to give back
		return nil
	}
	return err
}

// check reads the claimed task from the board again. It is Fenced or NotFound when the task
// is no longer the member's.
func (c *claims) check(ctx context.Context) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	now, err := c.Board.Get(ctx, t.ID)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return muster.Errorf(muster.NotFound, "task %d was deleted: stop working on it", t.ID)
	case errors.Is(err, muster.ErrCorrupt):
		return nil // another program may be in the middle of saving it; the landing asks again
	case err == nil && now.Status == muster.Completed: // by another program, perhaps, in the owner's name
		return muster.Errorf(muster.Fenced, "task %d is completed: stop working on it", t.ID)
	case err == nil && (now.Fence != t.Fence || now.Owner != c.name()):
		return muster.Errorf(muster.Fenced, "task %d was taken from you (it is %s now): stop working on it",
			t.ID, now.Status)
	case err == nil:
		c.setTask(now)
	}
	return err
}

// verify checks the claim before a tool changes something for it, and drops a lost one.
func (c *claims) verify(ctx context.Context) error { return c.onClaimLost(ctx, c.check(ctx)) }

// onClaimLost drops the claim if err says that it is lost and the board agrees, and returns
// err. What the member has running in the lane is stopped first, because the lane may be the
// next owner's; a lane that no longer belongs to the task is archived.
func (c *claims) onClaimLost(ctx context.Context, err error) error {
	if !isLostClaim(err) {
		return err
	}
	t, had := c.CurrentTask()
	if had {
		c.logger().InfoContext(ctx, "claim lost", "task", t.ID, "fence", t.Fence, "cause", err)
		switch now := c.check(ctx); {
		case now == nil && errors.Is(err, muster.ErrFenced): // its landing was revoked, and whoever did it has died
			if e := c.release(ctx, "its right to land was taken back", "", false); e != nil {
				return e
			}
			c.endTask()
			return err
		case !isLostClaim(now):
			return err // the claim stands: something else is missing, the lane or the target
		}
	}
	c.jobs.Stop()
	c.endTask()
	if !had || t.Worktree == "" {
		return err
	}
	// A void plan does no harm.
	c.logDropped(ctx, "cancelling the plans of a lost task", c.plans.cancel(ctx, t, "the task was taken back"))
	if now, e := c.Board.Get(ctx, t.ID); errors.Is(e, muster.ErrNotFound) || e == nil && now.Worktree != t.Worktree {
		c.lanes.archive(ctx, t.Worktree)
	} else {
		c.lanes.leave(ctx, t.Worktree)
	}
	return err
}
