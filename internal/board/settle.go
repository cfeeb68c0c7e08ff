package board

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster"
	"muster/journal"
)

// lostFor is how long a blocker must be missing before the edge to it goes, where nobody saw it deleted: another
// program may be about to write it.
const lostFor = 10 * time.Second

// OnEffect says what settles an effect of a completed task: mail to the lead, archiving its lane. It is called after
// the step that named the effect, or by Settle, and again whenever it failed or a crash came before it was noted: it
// must be repeatable. Its errors end no step: the effect stays, and Settle returns them. An effect without a handler
// stays for a process that has one. Unblocking is the board's own. The last handler for an effect counts. A handler must not call Settle, which waits for it.
func (b *Board) OnEffect(e muster.Effect, f func(context.Context, muster.Task) error) {
	b.follow.Lock()
	defer b.follow.Unlock()
	b.handlers[e] = f
}

// Settle makes the board whole, whatever processes died in the middle of: edges half added, effects left over,
// blockedBy and blocks that disagree with dependsOn, edges to what is gone, cycles and completions that other programs
// wrote. It may be called any number of times, and costs little when nothing has changed. It goes on past what fails,
// leaves that for a later call, and returns all such errors joined. An effect that failed is an *Unsettled among them:
// OnlyUnsettled tells a note from a board that cannot be used.
func (b *Board) Settle(ctx context.Context) error {
	select {
	case b.settle <- struct{}{}:
		defer func() { <-b.settle }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m, err := b.readMeta(ctx)
	if err == nil && len(m.Adding) > 0 {
		err = b.finishEdges(ctx, m.Adding)
	}
	if e := b.refresh(ctx); e != nil {
		return errors.Join(err, e)
	}
	b.mu.Lock()
	dirty := slices.Sorted(maps.Keys(b.ix.dirty))
	removed := slices.Sorted(maps.Keys(b.ix.removed))
	var rounds [][]muster.TaskID
	if b.ix.tangled {
		rounds = b.ix.rounds()
		b.ix.tangled = false
	}
	b.mu.Unlock()
	for _, round := range rounds {
		if e := b.park(ctx, round); e != nil {
			err = errors.Join(err, e)
			b.mu.Lock()
			b.ix.tangled = true
			b.mu.Unlock()
		}
	}
	for _, id := range removed {
		err = errors.Join(err, b.sweep(ctx, id))
	}
	for _, id := range dirty {
		if e := b.tidy(ctx, id, m); e != nil {
			err = errors.Join(err, e)
			if errors.Is(e, muster.ErrUnavailable) || ctx.Err() != nil {
				break // so would the next ones
			}
		}
	}
	if e := b.refresh(ctx); e != nil {
		return errors.Join(err, e)
	}
	b.mu.Lock()
	var owing []muster.Task
	for _, id := range slices.Sorted(maps.Keys(b.ix.effects)) {
		owing = append(owing, b.ix.view(id))
	}
	b.mu.Unlock()
	for _, t := range owing {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		_, owed, e := b.settleTask(ctx, t)
		err = errors.Join(err, owed, e)
	}
	return err
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
// again. False for nil.
func OnlyUnsettled(err error) bool {
	switch e := err.(type) {
	case *Unsettled:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !OnlyUnsettled(err) })
	}
	return false
}

// tidy compares one task with the graph and repairs it.
func (b *Board) tidy(ctx context.Context, id muster.TaskID, m meta) error {
	b.mu.Lock()
	e, known := b.ix.tasks[id]
	if !known {
		delete(b.ix.dirty, id)
		b.mu.Unlock()
		return nil
	}
	foreign, strays := e.done() && e.task.CompletedBy == "", stray(e.task)
	var lost []muster.TaskID
	waits := false // for a blocker that may still come
	for _, d := range e.on {
		if b.ix.exists(d) {
			continue
		}
		if _, seen := b.ix.missing[d]; !seen {
			b.ix.missing[d] = time.Now()
		}
		if b.ix.gone[d] || d < max(m.NextID, b.ix.highest+1) && time.Since(b.ix.missing[d]) >= lostFor {
			lost = append(lost, d)
		} else {
			waits = true
		}
	}
	delete(b.ix.dirty, id)
	b.mu.Unlock()

	var err error
	if foreign {
		err = b.believe(ctx, id)
	}
	if strays {
		err = b.putBack(ctx, id)
	}
	if len(lost) > 0 {
		_, e := b.dropEdges(ctx, id, "", lost...)
		err = first(err, e)
	}
	err = first(err, b.mend(ctx, id))
	if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
		err = nil // it went, or broke, meanwhile: the next look at the changes shows it
	}
	if err != nil || waits {
		b.mu.Lock()
		b.ix.dirty[id] = true
		b.mu.Unlock()
	}
	return err
}

// mend brings the task's blockedBy and blocks to what the graph, as last refreshed, says.
func (b *Board) mend(ctx context.Context, id muster.TaskID) error {
	b.mu.Lock()
	e, known := b.ix.tasks[id]
	whole := !known || same(e.task.BlockedBy, b.ix.unfinished(e.on)) && same(e.task.Blocks, b.ix.dependants[id])
	b.mu.Unlock()
	if whole {
		return nil
	}
	_, err := b.change(ctx, id, func(t *muster.Task) error {
		b.mu.Lock()
		waits, blocks := b.ix.unfinished(t.DependsOn), slices.Clone(b.ix.dependants[id])
		b.mu.Unlock()
		// A blocker that somebody unblocked us from may have been completed since the index was refreshed.
		waits = slices.DeleteFunc(waits, func(d muster.TaskID) bool {
			if slices.Contains(t.BlockedBy, d) {
				return false
			}
			on, _, err := b.read(ctx, d)
			return err == nil && on.Status == muster.Completed
		})
		if same(t.BlockedBy, waits) && same(t.Blocks, blocks) {
			return errSame
		}
		t.BlockedBy, t.Blocks = waits, blocks
		return nil
	})
	return err
}

// same says whether a list of other programs' making, in whatever order, has what the sorted one has.
func same(ids, sorted []muster.TaskID) bool {
	return slices.Equal(ids, sorted) || slices.Equal(set(ids...), sorted)
}

// believe takes note of a completion that another program wrote.
func (b *Board) believe(ctx context.Context, id muster.TaskID) error {
	noted := false
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		err := believe(t, now())
		noted = err == nil
		return err
	})
	if err != nil || !noted {
		return err
	}
	return b.tell(ctx, event(journal.TaskForeign, t, t.Owner, map[string]any{"text": "another program completed it: not landed by us"}))
}

// putBack frees a task that another program left where nobody could ever claim it.
func (b *Board) putBack(ctx context.Context, id muster.TaskID) error {
	t, _, err := b.read(ctx, id)
	if err != nil || !stray(t) {
		return err
	}
	if f := b.revoker(); f != nil {
		if err := f(ctx, t); err != nil {
			return err
		}
	}
	fence, was := t.Fence, t.Owner
	t, err = b.change(ctx, id, func(t *muster.Task) error {
		if !stray(*t) || t.Fence != fence {
			return errSame
		}
		free(t, muster.Pending, now())
		t.Fence++
		return nil
	})
	if err != nil || t.Fence == fence {
		return err
	}
	return b.tell(ctx, event(journal.TaskForeign, t, was, map[string]any{"text": "another program put it back on the board"}))
}

// sweep removes a task that another program marked as deleted.
func (b *Board) sweep(ctx context.Context, id muster.TaskID) error {
	doc, err := b.tasks.Get(ctx, key(id))
	if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := decode(id, doc.Data)
	if err != nil || t.Status != deleted {
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
	if err := b.tasks.Delete(ctx, key(id), doc.Rev); err != nil {
		if errors.Is(err, muster.ErrStale) || errors.Is(err, muster.ErrNotFound) {
			return nil // somebody changed it: seen again by the next Settle
		}
		return err
	}
	t.UpdatedAt = now()
	down := b.tell(ctx, event(journal.TaskDeleted, t, "", map[string]any{"subject": t.Subject}))
	return first(down, b.unhook(ctx, t))
}

// park sets the tasks of a cycle aside: they wait for each other, so nobody could ever claim one.
func (b *Board) park(ctx context.Context, round []muster.TaskID) error {
	why := fmt.Sprintf("waits for itself: %s", arrows(append(slices.Clone(round), round[0])))
	for i, id := range round {
		next := round[(i+1)%len(round)]
		parked := false
		t, err := b.change(ctx, id, func(t *muster.Task) error {
			parked = t.Status == muster.Pending && t.Owner == "" && slices.Contains(t.DependsOn, next)
			if !parked {
				return errSame
			}
			giveUp(t, why, now())
			return nil
		})
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		if err == nil && parked {
			if err := b.tell(ctx, attention(t, "")); err != nil {
				return err
			}
			if _, _, err := b.settleTask(ctx, t); only(err) != nil {
				return err
			}
		}
	}
	return nil
}

// settleTask settles the effects that t names and clears those that are done. What this process is at already is left
// to it, until it is cleared: nobody is told twice of one thing. What handlers say is owed, and no failure of the
// step that named the effects; err is the board's own.
func (b *Board) settleTask(ctx context.Context, t muster.Task) (_ muster.Task, owed, err error) {
	if len(t.Effects) == 0 {
		return t, nil, nil
	}
	mine := b.begin(t)
	if len(mine) == 0 {
		return t, nil, nil
	}
	defer b.finish(t.ID, mine)
	// Read again: the last one who was at them may have cleared them since t was read.
	now, _, err := b.read(ctx, t.ID)
	if errors.Is(err, muster.ErrNotFound) {
		return t, nil, nil // deleted meanwhile: nothing is owed
	}
	if err != nil {
		return t, nil, err
	}
	t = now
	var settled []muster.Effect
	for _, e := range t.Effects {
		if !slices.Contains(mine, e) {
			continue
		}
		did, failed := b.settleEffect(ctx, t, e)
		switch {
		case failed != nil && e == muster.EffectUnblock:
			err = first(err, failed)
		case failed != nil:
			owed = errors.Join(owed, &Unsettled{Task: t.ID, Effect: e, Err: failed})
		case did:
			settled = append(settled, e)
		}
	}
	if settled == nil {
		return t, owed, err
	}
	// What is done is noted, also when ctx has just ended: nobody else may come by before the next start.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	now, e := b.change(late, t.ID, func(t *muster.Task) error {
		left := slices.DeleteFunc(slices.Clone(t.Effects), func(e muster.Effect) bool { return slices.Contains(settled, e) })
		if len(left) == len(t.Effects) {
			return errSame
		}
		t.Effects = left
		return nil
	})
	if errors.Is(e, muster.ErrNotFound) {
		return t, owed, err // deleted meanwhile: nothing is owed
	}
	if e != nil {
		return t, owed, first(err, e)
	}
	return now, owed, err
}

// begin takes those of t's effects that nobody in this process is at.
func (b *Board) begin(t muster.Task) (mine []muster.Effect) {
	b.follow.Lock()
	defer b.follow.Unlock()
	for _, e := range t.Effects {
		if job := (settling{t.ID, e}); !b.running[job] {
			b.running[job] = true
			mine = append(mine, e)
		}
	}
	return mine
}

func (b *Board) finish(id muster.TaskID, mine []muster.Effect) {
	b.follow.Lock()
	defer b.follow.Unlock()
	for _, e := range mine {
		delete(b.running, settling{id, e})
	}
}

// settleEffect settles one effect; false when that is not for this process.
func (b *Board) settleEffect(ctx context.Context, t muster.Task, e muster.Effect) (bool, error) {
	if e == muster.EffectUnblock {
		return true, b.unblock(ctx, t.ID)
	}
	b.follow.Lock()
	f := b.handlers[e]
	b.follow.Unlock()
	if f == nil {
		return false, nil
	}
	return true, f(ctx, t)
}

// unblock takes a completed task out of the blockedBy of all that wait for it.
func (b *Board) unblock(ctx context.Context, id muster.TaskID) error {
	if err := b.refresh(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	dependants := slices.Clone(b.ix.dependants[id])
	b.mu.Unlock()
	var err error
	for _, d := range dependants {
		if e := b.mend(ctx, d); e != nil && !errors.Is(e, muster.ErrNotFound) && !errors.Is(e, muster.ErrCorrupt) {
			err = first(err, e)
		}
	}
	return err
}

// first is the first error that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// only is err if the engine cannot be reached: what follows a durable step reports nothing less.
func only(err error) error {
	if errors.Is(err, muster.ErrUnavailable) {
		return err
	}
	return nil
}
