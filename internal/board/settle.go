package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster"
)

// Settle does what processes left undone when they died: edges that are only announced, effects that have not run, and
// edges to tasks that are gone. It also brings blockedBy to what dependsOn says, which another program may have written
// otherwise. It may be called any number of times, by several processes at once, because each repair is a step by
// compare-and-set. It costs little when nothing has changed.
//
// Settle goes on past what fails, leaves that for a later call, and returns all such errors joined. An
// effect that failed is an *Unsettled among them. OnlyUnsettled reports whether there is nothing worse.
func (b *Board) Settle(ctx context.Context) error {
	select {
	case b.settling <- struct{}{}:
		defer func() { <-b.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m, err := b.edges.finishAll(ctx)
	var dirty []muster.TaskID
	fresh := b.tasks.ViewFresh(ctx, func() { dirty = slices.Sorted(maps.Keys(b.graph.dirty)) })
	if fresh != nil {
		return errors.Join(err, fresh)
	}
	for _, id := range dirty { // a cold process has all tasks here, a warm one those that changed since
		if e := b.reconcile(ctx, id, m.NextID); e != nil {
			err = errors.Join(err, e)
			if errors.Is(e, muster.ErrUnavailable) || ctx.Err() != nil {
				break // so would the next ones
			}
		}
	}
	b.hasSettled = b.hasSettled || err == nil
	return errors.Join(err, b.effects.runAll(ctx))
}

// reconcile compares one task with the graph and repairs it. When that fails, the next Settle compares it again.
//
// An edge to a task that is not there is dropped if its id was given away before nextID, the next one, and this process
// has seen the task or finds it missing when it first settles. Otherwise another program may be about to write it.
func (b *Board) reconcile(ctx context.Context, id, nextID muster.TaskID) (err error) {
	var lost []muster.TaskID
	b.tasks.View(func() {
		g := b.graph
		delete(g.dirty, id) // before the repair, so that a change that comes during it marks the task again
		for _, d := range cmp.Or(g.tasks[id], absent).on {
			if !g.exists(d) && d < max(nextID, g.highest+1) && (g.gone[d] || !b.hasSettled) {
				lost = append(lost, d)
			}
		}
	})
	if len(lost) > 0 {
		_, err = b.edges.drop(ctx, id, "", lost...)
	}
	if err == nil {
		err = b.updateBlockedBy(ctx, id)
	}
	if err = ignoreVanished(err); err != nil {
		b.tasks.View(func() { mark(b.graph.dirty, id, true) })
	}
	return err
}

// Finding is something that does not fit in the document of a task. Settle mends it.
type Finding struct {
	Task muster.TaskID
	Text string
	Lane muster.Name // the lane that stands in the way, if one does
}

// Check compares what is stored of each task with the graph, and finds effects that still have to run. It
// changes nothing. A task that is being changed by a running team may be found although the next moment
// mends it.
func (b *Board) Check(ctx context.Context) (all []Finding, err error) {
	err = b.tasks.ViewFresh(ctx, func() {
		for _, id := range b.graph.ids() {
			n := b.graph.tasks[id]
			if is, want := set(n.task.BlockedBy...), b.graph.unfinished(n.on); !slices.Equal(is, want) {
				text := fmt.Sprintf("its field blockedBy has %v, and should have %v", is, want)
				all = append(all, Finding{Task: id, Text: text})
			}
			if len(n.task.Effects) > 0 {
				text := fmt.Sprintf("what follows its completion was not done: %v", n.task.Effects)
				all = append(all, Finding{id, text, n.task.Worktree})
			}
		}
	})
	return all, err
}
