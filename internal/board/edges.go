package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/journal"
)

// addEdges makes the task wait for on too. The put of meta is what decides: it fails for whoever saw an older graph.
// From then on the edges count, and whoever comes by writes them into the task. It returns the number of the addition.
func (b *Board) addEdges(ctx context.Context, id muster.TaskID, on []muster.TaskID) (int, error) {
	n := 0
	err := b.changeMeta(ctx, func(m *meta) error {
		if len(m.Adding) > 0 { // of others: the graph is whole only with them
			if err := b.finishEdges(ctx, m.Adding); err != nil {
				return err
			}
			fresh, err := b.readMeta(ctx)
			if err != nil {
				return err
			}
			*m = fresh
			if len(m.Adding) > 0 {
				return muster.Errorf(muster.Stale, "others are adding edges at the same time")
			}
		}
		if _, _, err := b.read(ctx, id); err != nil {
			return err
		}
		for _, d := range on {
			if _, _, err := b.read(ctx, d); errors.Is(err, muster.ErrNotFound) {
				return unknownBlocker(id, d)
			} else if err != nil {
				return err
			}
			if round, err := b.way(ctx, d, id); err != nil {
				return err
			} else if round != nil {
				return cycle(id, round)
			}
		}
		m.Edges++
		n = m.Edges
		m.Adding = append(m.Adding, adding{N: n, ID: id, On: on})
		return nil
	})
	return n, err
}

// pendingEdges says whether the addition n still waits to be written into its task.
func (b *Board) pendingEdges(ctx context.Context, n int) (bool, error) {
	m, err := b.readMeta(ctx)
	return slices.ContainsFunc(m.Adding, func(a adding) bool { return a.N == n }), err
}

// finishEdges writes additions into their tasks and strikes them off.
func (b *Board) finishEdges(ctx context.Context, list []adding) error {
	for _, a := range list {
		t, err := b.change(ctx, a.ID, func(t *muster.Task) error {
			// Asked after the task was read: while it is pending nobody has removed these edges again, and who does
			// later changes the task, so that this put is stale.
			if is, err := b.pendingEdges(ctx, a.N); err != nil {
				return err
			} else if !is {
				return errSame
			}
			if waitable(*t) != nil {
				return errSame
			}
			return b.wire(ctx, t, a.On)
		})
		if err == nil {
			b.unhookGone(ctx, t, a.On)
		}
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
	}
	return b.strikeEdges(ctx, list...)
}

// strikeEdges takes additions off the list.
func (b *Board) strikeEdges(ctx context.Context, list ...adding) error {
	return b.changeMeta(ctx, func(m *meta) error {
		left := slices.DeleteFunc(slices.Clone(m.Adding), func(a adding) bool {
			return slices.ContainsFunc(list, func(b adding) bool { return a.N == b.N })
		})
		if len(left) == len(m.Adding) {
			return errSame
		}
		m.Adding = left
		return nil
	})
}

// wire adds blockers to t. One that is gone by now adds nothing; one that is complete is no obstacle.
func (b *Board) wire(ctx context.Context, t *muster.Task, on []muster.TaskID) error {
	before := len(t.DependsOn)
	for _, d := range on {
		if slices.Contains(t.DependsOn, d) {
			continue
		}
		blocker, _, err := b.read(ctx, d)
		if errors.Is(err, muster.ErrNotFound) {
			continue
		}
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		t.DependsOn = set(slices.Concat(t.DependsOn, []muster.TaskID{d})...)
		if err != nil || blocker.Status != muster.Completed {
			t.BlockedBy = set(slices.Concat(t.BlockedBy, []muster.TaskID{d})...)
		}
	}
	if len(t.DependsOn) == before {
		return errSame
	}
	t.UpdatedAt = now()
	return nil
}

// waitable refuses new blockers for a task that somebody works on, or that is over.
func waitable(t muster.Task) error {
	switch t.Status {
	case muster.Pending, muster.NeedsAttention:
		if t.Owner == "" {
			return nil
		}
		return heldBy(t)
	}
	return notPending(t)
}

// dropEdges removes the blockers from the task, each with an event.
func (b *Board) dropEdges(ctx context.Context, id muster.TaskID, by muster.Name, on ...muster.TaskID) (muster.Task, error) {
	var was []muster.TaskID
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		was = nil
		for _, d := range on {
			if slices.Contains(t.DependsOn, d) {
				was = append(was, d)
			}
			t.DependsOn, t.BlockedBy = without(t.DependsOn, d), without(t.BlockedBy, d)
		}
		if was == nil {
			return errSame
		}
		t.UpdatedAt = now()
		return nil
	})
	if err != nil || was == nil {
		return t, err
	}
	var events []muster.Event
	for _, d := range was {
		events = append(events, event(journal.TaskEdgeRemoved, t, by, map[string]any{"blocker": int(d)}))
	}
	return t, b.tell(ctx, events...)
}

func unknownBlocker(id, on muster.TaskID) error {
	if id == 0 {
		return muster.Errorf(muster.Invalid, "there is no task %d to wait for", on)
	}
	return muster.Errorf(muster.Invalid, "task %d cannot wait for task %d: there is no task %d", id, on, on)
}

func cycle(id muster.TaskID, round []muster.TaskID) error {
	if round[0] == id {
		return muster.Errorf(muster.Invalid, "task %d cannot wait for itself", id)
	}
	return muster.Errorf(muster.Invalid, "task %d cannot wait for task %d: %s would wait for each other", id, round[0], arrows(append([]muster.TaskID{id}, round...)))
}

func arrows(ids []muster.TaskID) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = fmt.Sprint(int(id))
	}
	return strings.Join(s, " -> ")
}

// way is a path over the tasks as they are stored now: the index of a process that is told of changes may be behind
// those of others.
func (b *Board) way(ctx context.Context, from, to muster.TaskID) ([]muster.TaskID, error) {
	var failed error
	way := path(from, to, func(id muster.TaskID) []muster.TaskID {
		t, _, err := b.read(ctx, id)
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			failed = first(failed, err)
		}
		return t.DependsOn
	})
	return way, failed
}

// path is a shortest way from one task to another along what on says, both included; nil when there is none.
func path(from, to muster.TaskID, on func(muster.TaskID) []muster.TaskID) []muster.TaskID {
	came := map[muster.TaskID]muster.TaskID{from: from}
	todo := []muster.TaskID{from}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if at == to {
			way := []muster.TaskID{at}
			for at != from {
				at = came[at]
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, d := range on(at) {
			if _, seen := came[d]; !seen {
				came[d] = at
				todo = append(todo, d)
			}
		}
	}
	return nil
}

// rounds are the groups of unfinished tasks that wait for each other, each by id.
func (x *index) rounds() [][]muster.TaskID {
	// What can be finished one after the other is no part of a round: strike it off until nothing is left to strike.
	open := map[muster.TaskID]int{}
	var free []muster.TaskID
	for id, e := range x.tasks {
		if e.done() {
			continue
		}
		for _, d := range e.on {
			if b := x.tasks[d]; b != nil && !b.done() {
				open[id]++
			}
		}
		if open[id] == 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[0]
		free = free[1:]
		for _, d := range x.dependants[id] {
			if _, left := open[d]; !left {
				continue
			}
			if open[d]--; open[d] == 0 {
				delete(open, d)
				free = append(free, d)
			}
		}
	}
	// And from the other end: what nothing left waits for is in none either.
	waiters := map[muster.TaskID]int{}
	for id := range open {
		for _, d := range x.dependants[id] {
			if _, left := open[d]; left {
				waiters[id]++
			}
		}
		if waiters[id] == 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[0]
		free = free[1:]
		delete(open, id)
		for _, d := range x.tasks[id].on {
			if _, left := open[d]; left {
				if waiters[d]--; waiters[d] == 0 {
					free = append(free, d)
				}
			}
		}
	}
	// What is left is in a round or between two. It is in one if a way leads from it to itself.
	var out [][]muster.TaskID
	placed := map[muster.TaskID]bool{}
	for _, id := range x.ids {
		if _, left := open[id]; !left || placed[id] {
			continue
		}
		if round := x.round(id, open); round != nil {
			for _, d := range round {
				placed[d] = true
			}
			out = append(out, round)
		}
	}
	return out
}

// round is the shortest way from id back to itself over open tasks, id once; nil when there is none.
func (x *index) round(id muster.TaskID, open map[muster.TaskID]int) []muster.TaskID {
	on := func(id muster.TaskID) []muster.TaskID {
		return slices.DeleteFunc(slices.Clone(x.tasks[id].on), func(d muster.TaskID) bool { _, left := open[d]; return !left })
	}
	var best []muster.TaskID
	for _, d := range on(id) {
		if way := path(d, id, on); way != nil && (best == nil || len(way) < len(best)) {
			best = way
		}
	}
	return best
}
