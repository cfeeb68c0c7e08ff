package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster"
	"muster/journal"
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
		r.tasks.View(func() { mark(r.graph.dirty, id, true) })
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

// The rest of this file repairs what other programs, which know none of our rules, have written into the tasks.

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
			err = r.emit(ctx, attentionEvent(t, "")) // its effects are run at the end of Settle, with all others
		}
		if ignoreVanished(err) != nil {
			return err
		}
	}
	return nil
}
