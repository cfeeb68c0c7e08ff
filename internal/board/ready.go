package board

import (
	"cmp"
	"iter"
	"slices"

	"muster"
)

// queue has the tasks that ask for one role, or for none, and can be claimed now. It is kept sorted, so that a
// claim costs the same on every board: the first one is found at once, and to take it out moves a few bytes for
// each of the others.
type queue struct {
	sorted []*node // by inOrder, but for those in moved
	moved  []*node // have become ready or are not any more, the last change last
}

// inOrder compares tasks by who is claimed first: the higher priority, then the lower id.
func inOrder(a, b *node) int {
	return cmp.Or(cmp.Compare(b.task.Priority, a.task.Priority), cmp.Compare(a.task.ID, b.task.ID))
}

// queue returns the queue of the tasks that ask for the role. With "" it is that of the tasks that ask for none.
func (g *graph) queue(role string) *queue {
	key := muster.RoleKey(role)
	if g.ready[key] == nil {
		g.ready[key] = new(queue)
	}
	return g.ready[key]
}

// setReady adds the node to its queue, or removes it from there.
func (g *graph) setReady(n *node, ready bool) {
	if n.isReady == ready {
		return
	}
	n.isReady = ready
	q := g.queue(n.task.ClaimRole)
	q.moved = append(q.moved, n)
	if len(q.moved) > 2*len(g.tasks)+64 { // nobody has asked for long, and the list must not grow for ever
		q.nodes()
	}
}

// readyFor yields the tasks that a member of the role may claim, in the order in which they are claimed: that of
// inOrder, but tasks with files that somebody works on come after all others. They are not held back: where there is
// nothing else to do, a conflict is better than an idle member. With onlyOwn, those that ask for no role are left out.
func (g *graph) readyFor(role string, onlyOwn bool) iter.Seq[muster.TaskID] {
	busy := g.busyFiles()
	if len(busy) == 0 {
		return g.readyInOrder(role, onlyOwn)
	}
	return func(yield func(muster.TaskID) bool) {
		var later []muster.TaskID
		for id := range g.readyInOrder(role, onlyOwn) {
			if overlap(g.tasks[id].task.Files, busy) {
				later = append(later, id)
			} else if !yield(id) {
				return
			}
		}
		for _, id := range later {
			if !yield(id) {
				return
			}
		}
	}
}

// busyFiles returns the files of the tasks that somebody works on, or is about to.
func (g *graph) busyFiles() (busy []string) {
	for _, ids := range []map[muster.TaskID]bool{g.owning, g.claiming} {
		for id := range ids {
			if n := g.tasks[id]; n != nil {
				busy = append(busy, n.task.Files...)
			}
		}
	}
	return busy
}

// readyInOrder is readyFor whoever works on what.
func (g *graph) readyInOrder(role string, onlyOwn bool) iter.Seq[muster.TaskID] {
	return func(yield func(muster.TaskID) bool) {
		var own, open []*node
		if role != "" {
			own = g.queue(role).nodes()
		}
		if !onlyOwn {
			open = g.queue("").nodes()
		}
		for len(open)+len(own) > 0 {
			next := &open
			if len(open) == 0 || len(own) > 0 && inOrder(own[0], open[0]) < 0 {
				next = &own
			}
			if t := (*next)[0].task; t.RoleMay(role) && !yield(t.ID) {
				return
			}
			*next = (*next)[1:]
		}
	}
}

// nodes brings sorted up to date with moved and returns it. Many changes at once, as when the board is read for
// the first time, cost one sort.
func (q *queue) nodes() []*node {
	if len(q.moved) > 64 {
		all := append(q.sorted, q.moved...)
		q.sorted = slices.DeleteFunc(all, func(n *node) bool { return !n.isReady })
		slices.SortFunc(q.sorted, inOrder)
		q.sorted = slices.Compact(q.sorted) // one that has moved twice
		q.moved = nil
	}
	for _, n := range q.moved {
		// A newer version of the task may have its place already. It comes after this one in moved.
		at, found := slices.BinarySearchFunc(q.sorted, n, inOrder)
		isThere := found && q.sorted[at] == n
		switch {
		case n.isReady && !isThere:
			q.sorted = slices.Insert(q.sorted, at, n)
		case !n.isReady && isThere:
			q.sorted = slices.Delete(q.sorted, at, at+1)
		}
	}
	q.moved = q.moved[:0]
	return q.sorted
}
