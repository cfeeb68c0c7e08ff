package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"muster"
	"muster/internal/clock"
)

// OnEffect says what runs an effect of a task: mail to the lead, archiving its lane. The handler is called
// after the step that named the effect, or by Settle, and again whenever it failed or a crash came before
// its success was recorded, so it must be repeatable. Its errors end no step: the effect stays, and Settle
// returns them. An effect without a handler stays for a process that has one. Unblocking is the board's
// own. The last handler for an effect counts. A handler must not call Settle, which waits for it.
func (b *Board) OnEffect(e muster.Effect, f func(context.Context, muster.Task) error) {
	b.effects.handlers.Store(e, f)
}

// effects runs what must follow from a change of a task. The task names each effect in the same write as the
// change, so a crash loses none, and names it no more once it is done.
type effects struct {
	*records
	handlers sync.Map // of OnEffect: what runs an effect, by muster.Effect
	running  sync.Map // the effects that this process is running, by effectRun
}

// effectRun is one effect of one task.
type effectRun struct {
	id     muster.TaskID
	effect muster.Effect
}

// Unsettled is an effect that failed and stays for a later Settle.
type Unsettled struct {
	Task   muster.TaskID
	Effect muster.Effect
	Err    error
}

// Error says which effect failed and that it is tried again.
func (u *Unsettled) Error() string {
	return fmt.Sprintf("what follows task %d (%s) failed and is tried again later: %v", u.Task, u.Effect, u.Err)
}

// Unwrap returns the error of the handler.
func (u *Unsettled) Unwrap() error { return u.Err }

// OnlyUnsettled reports whether err, of Settle, is of effects alone: the board is whole, and the next
// Settle tries them again. It is false for nil.
func OnlyUnsettled(err error) bool {
	switch e := err.(type) { //nolint:errorlint // every error of a joined one is looked at, not the first that fits
	case *Unsettled:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !OnlyUnsettled(err) })
	}
	return false
}

// run runs the effects that t names and clears those that are done. It skips effects that this process is
// already running, so that nobody is told twice of one thing. owed are the errors of handlers, which are no
// failure of the step that named the effects; err is the board's own.
func (f *effects) run(ctx context.Context, t muster.Task) (_ muster.Task, owed, err error) {
	mine := slices.DeleteFunc(slices.Clone(t.Effects), func(e muster.Effect) bool {
		_, isRunning := f.running.LoadOrStore(effectRun{t.ID, e}, nil)
		return isRunning
	})
	if len(mine) == 0 {
		return t, nil, nil
	}
	defer func() {
		for _, e := range mine {
			f.running.Delete(effectRun{t.ID, e})
		}
	}()
	// Read again after the reservation: whoever ran them last may have cleared them since t was read.
	now, _, err := f.read(ctx, t.ID)
	if errors.Is(err, muster.ErrNotFound) {
		return t, nil, nil // deleted meanwhile: nothing is owed
	}
	if err != nil {
		return t, nil, err
	}
	t = now
	var done []muster.Effect
	for _, e := range t.Effects {
		handle, isHandled := f.handlers.Load(e)
		if !isHandled || !slices.Contains(mine, e) {
			continue
		}
		// One that fails stays in the document, as one that nobody here runs.
		switch failed := f.runOne(ctx, t, handle.(func(context.Context, muster.Task) error)); {
		case failed == nil:
			done = append(done, e)
		case e == muster.EffectUnblock:
			err = failed
		default:
			owed = errors.Join(owed, &Unsettled{Task: t.ID, Effect: e, Err: failed})
		}
	}
	if done != nil {
		if now, e := f.clear(ctx, t, done); e == nil {
			t = now
		} else if !errors.Is(e, muster.ErrNotFound) { // deleted meanwhile: nothing is owed
			err = cmp.Or(err, e)
		}
	}
	return t, owed, err
}

// clear removes effects that have run from the task. It goes on for a moment when ctx has ended, because
// nobody else may settle the board before the next start, and the effects would then run again. It removes
// only those that have run, and none that a later end of the task, with another fence, has named meanwhile.
func (f *effects) clear(ctx context.Context, ran muster.Task, done []muster.Effect) (muster.Task, error) {
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	return f.change(ctx, ran.ID, func(t *muster.Task) error {
		if t.Fence != ran.Fence || t.Status != ran.Status {
			return errNoChange
		}
		t.Effects = slices.DeleteFunc(t.Effects, func(e muster.Effect) bool { return slices.Contains(done, e) })
		return nil
	})
}

// runOne runs one effect by its handler, which is given the task with Blocks: those that write mail about it need them.
func (f *effects) runOne(
	ctx context.Context, t muster.Task, handle func(context.Context, muster.Task) error,
) (err error) {
	if t.Blocks, err = f.dependants(ctx, t.ID); err != nil {
		return err
	}
	return handle(ctx, t)
}

// unblock is the handler of muster.EffectUnblock. A task that begins to wait while this runs reads the blocker itself
// and finds it completed. One dependant that fails, such as a bad document, does not keep the others blocked.
func (f *effects) unblock(ctx context.Context, t muster.Task) (err error) {
	for _, d := range t.Blocks {
		err = cmp.Or(err, ignoreVanished(f.updateBlockedBy(ctx, d)))
	}
	return err
}

// runAll runs the effects of all tasks that have any. It goes on past those that fail.
func (f *effects) runAll(ctx context.Context) error {
	tasks, err := f.list(ctx, func() []muster.TaskID { return slices.Sorted(maps.Keys(f.graph.effects)) })
	for _, t := range tasks {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		_, owed, e := f.run(ctx, t)
		err = errors.Join(err, owed, e)
	}
	return err
}
