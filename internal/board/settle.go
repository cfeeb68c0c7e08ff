package board

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"muster"
)

// missingFor is how long a blocker must be missing before the edge to it is dropped when nobody saw it
// deleted: another program may be about to write it.
const missingFor = 10 * time.Second

// Settle repairs what processes left unfinished when they died, and what other programs wrote without our
// rules: edges that are only announced, effects that have not run, a blockedBy that disagrees with
// dependsOn, edges to tasks that are gone, cycles and completions. It may be called any number of times, by
// several processes at once, because each repair is a step by compare-and-set. It costs little when nothing
// has changed.
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
	r := repair{b, m.NextID}
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
		if e := r.parkCycle(ctx, cycle); e != nil {
			err = errors.Join(err, e)
			b.tasks.View(func() { b.graph.hasCycles = true }) // so that the next Settle looks again
		}
	}
	for _, id := range removed {
		err = errors.Join(err, r.removeMarked(ctx, id))
	}
	for _, id := range dirty { // a cold process has all tasks here, a warm one those that changed since
		if e := r.reconcile(ctx, id); e != nil {
			err = errors.Join(err, e)
			if errors.Is(e, muster.ErrUnavailable) || ctx.Err() != nil {
				break // so would the next ones
			}
		}
	}
	return errors.Join(err, b.effects.runAll(ctx))
}

// repair is what one Settle does to tasks. Each of its methods leaves a task that is whole already as it
// is.
type repair struct {
	*Board
	nextID muster.TaskID // of the meta document, when Settle began
}

// reconcile compares one task with the graph and repairs it. When that fails, or the task waits for a
// blocker that may still come, the next Settle compares it again.
//
// A blocker that is not there is lost once its time in graph.missing has come, but only if its id was given
// away already: a task of a later id may still be created.
func (r repair) reconcile(ctx context.Context, id muster.TaskID) (err error) {
	var isForeignDone, isUnclaimable, waits bool
	var lost []muster.TaskID
	r.tasks.View(func() {
		g := r.graph
		delete(g.dirty, id) // before the repair, so that a change that comes during it marks the task again
		n := cmp.Or(g.tasks[id], absent)
		isForeignDone, isUnclaimable = n.isDone() && n.task.CompletedBy == "", isInconsistent(*n.task)
		for _, d := range n.on {
			if g.exists(d) {
				continue
			}
			if _, known := g.missing[d]; !known {
				g.missing[d] = time.Now().Add(missingFor)
			}
			if d < max(r.nextID, g.highest+1) && !time.Now().Before(g.missing[d]) {
				lost = append(lost, d)
			} else {
				waits = true
			}
		}
	})
	if isForeignDone {
		err = r.acceptForeign(ctx, id)
	}
	if isUnclaimable {
		err = r.restoreStatus(ctx, id)
	}
	if len(lost) > 0 {
		_, e := r.edges.drop(ctx, id, "", lost...)
		err = cmp.Or(err, e)
	}
	err = ignoreVanished(cmp.Or(err, r.updateBlockedBy(ctx, id)))
	if err != nil || waits {
		r.tasks.View(func() { r.graph.dirty[id] = true })
	}
	return err
}
