package board

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster"
)

// OnEffect says what runs an effect of a task: mail to the lead, archiving its lane. The handler is called after the
// step that named the effect, or by Settle, and again whenever it failed or a crash came before its success was
// recorded, so it must be repeatable. Its errors end no step: the effect stays, and Settle returns them. An effect
// without a handler stays for a process that has one. Unblocking is the board's own. The last handler for an effect
// counts. A handler must not call Settle, which waits for it.
func (b *Board) OnEffect(e muster.Effect, f func(context.Context, muster.Task) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handlers[e] = f
}

// Unsettled is an effect that failed and stays for a later Settle.
type Unsettled struct {
	Task   muster.TaskID
	Effect muster.Effect
	Err    error
}

func (u *Unsettled) Error() string {
	return fmt.Sprintf("what follows task %d (%s) failed and is tried again later: %v", u.Task, u.Effect, u.Err)
}

func (u *Unsettled) Unwrap() error { return u.Err }

// OnlyUnsettled reports whether err, of Settle, is of effects alone: the board is whole, and the next Settle tries them
// again. It is false for nil.
func OnlyUnsettled(err error) bool {
	switch e := err.(type) {
	case *Unsettled:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !OnlyUnsettled(err) })
	}
	return false
}

// runEffects runs the effects that t names and clears those that are done. It skips effects that this process is
// already running, so that nobody is told twice of one thing. owed are the errors of handlers, which are no failure
// of the step that named the effects; err is the board's own.
func (b *Board) runEffects(ctx context.Context, t muster.Task) (_ muster.Task, owed, err error) {
	if len(t.Effects) == 0 {
		return t, nil, nil
	}
	mine := b.reserveEffects(t)
	if len(mine) == 0 {
		return t, nil, nil
	}
	defer b.releaseEffects(t.ID, mine)
	// Read again after the reservation: whoever ran them last may have cleared them since t was read.
	now, _, err := b.read(ctx, t.ID)
	if errors.Is(err, muster.ErrNotFound) {
		return t, nil, nil // deleted meanwhile: nothing is owed
	}
	if err != nil {
		return t, nil, err
	}
	t = now
	var done []muster.Effect
	for _, e := range t.Effects {
		if !slices.Contains(mine, e) {
			continue
		}
		ran, failed := b.runEffect(ctx, t, e)
		switch {
		case failed != nil && e == muster.EffectUnblock:
			err = firstError(err, failed)
		case failed != nil:
			owed = errors.Join(owed, &Unsettled{Task: t.ID, Effect: e, Err: failed})
		case ran:
			done = append(done, e)
		}
	}
	if done == nil {
		return t, owed, err
	}
	now, e := b.clearEffects(ctx, t.ID, done)
	switch {
	case e == nil:
		return now, owed, err
	case errors.Is(e, muster.ErrNotFound): // deleted meanwhile: nothing is owed
		return t, owed, err
	}
	return t, owed, firstError(err, e)
}

// clearEffects records that effects are done, also when ctx has just ended: no other process may come by before the
// next start.
func (b *Board) clearEffects(ctx context.Context, id muster.TaskID, done []muster.Effect) (muster.Task, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return b.change(ctx, id, func(t *muster.Task) error {
		isDone := func(e muster.Effect) bool { return slices.Contains(done, e) }
		left := slices.DeleteFunc(slices.Clone(t.Effects), isDone)
		if len(left) == len(t.Effects) {
			return errNoChange
		}
		t.Effects = left
		return nil
	})
}

// reserveEffects reserves those of t's effects that nobody in this process is running, and returns them.
func (b *Board) reserveEffects(t muster.Task) (mine []muster.Effect) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range t.Effects {
		if run := (effectRun{t.ID, e}); !b.running[run] {
			b.running[run] = true
			mine = append(mine, e)
		}
	}
	return mine
}

func (b *Board) releaseEffects(id muster.TaskID, mine []muster.Effect) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range mine {
		delete(b.running, effectRun{id, e})
	}
}

// runEffect runs one effect. It returns false when no handler of this process does.
func (b *Board) runEffect(ctx context.Context, t muster.Task, e muster.Effect) (bool, error) {
	if e == muster.EffectUnblock {
		return true, b.unblock(ctx, t.ID)
	}
	b.mu.Lock()
	f := b.handlers[e]
	b.mu.Unlock()
	if f == nil {
		return false, nil
	}
	t, err := b.WithBlocks(ctx, t)
	if err != nil {
		return true, err
	}
	return true, f(ctx, t)
}

// unblock takes a completed task out of the blockedBy of all that wait for it.
func (b *Board) unblock(ctx context.Context, id muster.TaskID) error {
	var dependants []muster.TaskID
	if err := b.tasks.ViewFresh(ctx, func() { dependants = b.graph.blocks(id) }); err != nil {
		return err
	}
	var err error
	for _, d := range dependants {
		err = firstError(err, ignoreVanished(b.updateBlockedBy(ctx, d)))
	}
	return err
}
