package board

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"muster"
)

// missingFor is how long a blocker must be missing before the edge to it is dropped when nobody saw it deleted: another
// program may be about to write it.
const missingFor = 10 * time.Second

// Settle makes the board whole, whatever processes died in the middle of: edges half added, effects left over,
// blockedBy that disagrees with dependsOn, edges to tasks that are gone, cycles and completions that other programs
// wrote. It may be called any number of times, and costs little when nothing has changed. It goes on past what fails,
// leaves that for a later call, and returns all such errors joined. An effect that failed is an *Unsettled among
// them: OnlyUnsettled tells a note from a board that cannot be used.
func (b *Board) Settle(ctx context.Context) error {
	select {
	case b.settling <- struct{}{}:
		defer func() { <-b.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m, err := b.readMeta(ctx)
	if err == nil && len(m.Adding) > 0 {
		err = b.finishEdges(ctx, m.Adding)
	}
	var dirty, removed []muster.TaskID
	var cycles [][]muster.TaskID
	fresh := b.tasks.ViewFresh(ctx, func() {
		dirty = slices.Sorted(maps.Keys(b.graph.dirty))
		removed = slices.Sorted(maps.Keys(b.graph.removed))
		if b.graph.hasCycles {
			cycles = b.graph.cycles()
			b.graph.hasCycles = false
		}
	})
	if fresh != nil {
		return errors.Join(err, fresh)
	}
	for _, cycle := range cycles {
		if e := b.parkCycle(ctx, cycle); e != nil {
			err = errors.Join(err, e)
			b.tasks.View(func() { b.graph.hasCycles = true })
		}
	}
	for _, id := range removed {
		err = errors.Join(err, b.removeMarked(ctx, id))
	}
	for _, id := range dirty {
		if e := b.reconcile(ctx, id, m); e != nil {
			err = errors.Join(err, e)
			if errors.Is(e, muster.ErrUnavailable) || ctx.Err() != nil {
				break // so would the next ones
			}
		}
	}
	return errors.Join(err, b.runAllEffects(ctx))
}

// runAllEffects runs the effects of all tasks that have any. It goes on past those that fail.
func (b *Board) runAllEffects(ctx context.Context) error {
	tasks, err := b.list(ctx, func() []muster.TaskID { return slices.Sorted(maps.Keys(b.graph.effects)) })
	for _, t := range tasks {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		_, owed, e := b.runEffects(ctx, t)
		err = errors.Join(err, owed, e)
	}
	return err
}

// findings are what reconcile has to do for one task.
type findings struct {
	foreignDone  bool            // another program completed it
	inconsistent bool            // another program left it where nobody can claim it
	lost         []muster.TaskID // blockers that are gone for good
	waits        bool            // for a blocker that may still come
}

// inspect compares a task with the graph. False: there is no such task any more. The graph is locked.
func (b *Board) inspect(id muster.TaskID, m meta) (f findings, known bool) {
	g := b.graph
	delete(g.dirty, id)
	n, known := g.tasks[id]
	if !known {
		return f, false
	}
	f.foreignDone, f.inconsistent = n.isDone() && n.task.CompletedBy == "", isInconsistent(*n.task)
	for _, d := range n.on {
		if g.exists(d) {
			continue
		}
		if _, seen := g.missing[d]; !seen {
			g.missing[d] = time.Now()
		}
		if g.gone[d] || d < max(m.NextID, g.highest+1) && time.Since(g.missing[d]) >= missingFor {
			f.lost = append(f.lost, d)
		} else {
			f.waits = true
		}
	}
	return f, true
}

// reconcile compares one task with the graph and repairs it.
func (b *Board) reconcile(ctx context.Context, id muster.TaskID, m meta) error {
	var f findings
	var known bool
	b.tasks.View(func() { f, known = b.inspect(id, m) })
	if !known {
		return nil
	}
	var err error
	if f.foreignDone {
		err = b.acceptForeign(ctx, id)
	}
	if f.inconsistent {
		err = b.restoreStatus(ctx, id)
	}
	if len(f.lost) > 0 {
		_, e := b.dropEdges(ctx, id, "", f.lost...)
		err = firstError(err, e)
	}
	err = ignoreVanished(firstError(err, b.updateBlockedBy(ctx, id)))
	if err != nil || f.waits {
		b.tasks.View(func() { b.graph.dirty[id] = true })
	}
	return err
}

// ignoreVanished returns err unless it says that the task was deleted or became corrupt meanwhile: the next refresh
// shows that.
func ignoreVanished(err error) error {
	if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
		return nil
	}
	return err
}

// updateBlockedBy brings the task's blockedBy to what the graph, as last refreshed, says.
func (b *Board) updateBlockedBy(ctx context.Context, id muster.TaskID) error {
	right := false
	b.tasks.View(func() {
		n, known := b.graph.tasks[id]
		right = !known || same(n.task.BlockedBy, b.graph.unfinished(n.on))
	})
	if right {
		return nil
	}
	_, err := b.change(ctx, id, func(t *muster.Task) error {
		var waits []muster.TaskID
		b.tasks.View(func() { waits = b.graph.unfinished(t.DependsOn) })
		// The graph may be behind: a blocker that somebody has already taken out of blockedBy may have been completed
		// since. Putting it back would block the task although nothing unblocks it any more.
		waits = slices.DeleteFunc(waits, func(d muster.TaskID) bool {
			if slices.Contains(t.BlockedBy, d) {
				return false
			}
			on, _, err := b.read(ctx, d)
			return err == nil && on.Status == muster.Completed
		})
		if same(t.BlockedBy, waits) {
			return errNoChange
		}
		t.BlockedBy = waits
		return nil
	})
	return err
}

// same reports whether a list that another program may have written, in whatever order, has what the sorted one has.
func same(ids, sorted []muster.TaskID) bool {
	return slices.Equal(ids, sorted) || slices.Equal(set(ids...), sorted)
}

// firstError returns the first of errs that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// onlyUnavailable returns err if it says that the engine cannot be reached: nothing less is reported of what follows a
// step that is already durable.
func onlyUnavailable(err error) error {
	if errors.Is(err, muster.ErrUnavailable) {
		return err
	}
	return nil
}
