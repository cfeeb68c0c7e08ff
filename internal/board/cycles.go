package board

import (
	"maps"
	"slices"

	"muster"
)

// path returns a shortest path that begins with one of from and ends with to, both included, or nil when there
// is none. on returns the blockers of a task. It is a breadth-first search, so of several cycles people are
// shown one that is short.
func path(to muster.TaskID, on func(muster.TaskID) []muster.TaskID, from ...muster.TaskID) (way []muster.TaskID) {
	came := map[muster.TaskID]muster.TaskID{} // the task before each one on the way; 0 before the first
	var todo []muster.TaskID
	reach := func(before muster.TaskID, ids []muster.TaskID) {
		for _, id := range ids {
			if _, seen := came[id]; !seen {
				came[id] = before
				todo = append(todo, id)
			}
		}
	}
	for reach(0, from); len(todo) > 0; todo = todo[1:] {
		if todo[0] == to {
			for at := to; at != 0; at = came[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		reach(todo[0], on(todo[0]))
	}
	return nil
}

// cycles returns the groups of unfinished tasks that wait for each other, each in the order in which they
// wait. Each is a shortest cycle through its first task; every task that is in some cycle is in one of
// them.
func (g *graph) cycles() (out [][]muster.TaskID) {
	component := g.components()
	placed := map[muster.TaskID]bool{}
	for _, id := range slices.Sorted(maps.Keys(component)) {
		if placed[id] {
			continue
		}
		// A cycle never leaves its component, so the search for one through id need not either.
		on := func(id muster.TaskID) []muster.TaskID {
			return slices.DeleteFunc(slices.Clone(g.tasks[id].on), func(d muster.TaskID) bool {
				return component[d] != component[id]
			})
		}
		if cycle := path(id, on, on(id)...); cycle != nil {
			out = append(out, cycle)
			for _, d := range cycle {
				placed[d] = true
			}
		}
	}
	return out
}

// components gives each unfinished task a task of its strongly connected component: two tasks are given the
// same one exactly if each waits for the other, directly or through others. It is Kosaraju's algorithm, which
// looks at each edge twice: it goes through the tasks in an order in which each comes after all that it waits
// for, unless they wait for each other, and then backwards through that order along the edges to dependants.
func (g *graph) components() map[muster.TaskID]muster.TaskID {
	component := map[muster.TaskID]muster.TaskID{} // 0 for a task that was visited and has none yet
	var order []muster.TaskID
	var visit func(muster.TaskID)
	visit = func(id muster.TaskID) {
		if _, visited := component[id]; visited || g.tasks[id] == nil || g.isDone(id) {
			return
		}
		component[id] = 0
		for _, d := range g.tasks[id].on {
			visit(d)
		}
		order = append(order, id)
	}
	for id := range g.tasks {
		visit(id)
	}
	var assign func(id, to muster.TaskID)
	assign = func(id, to muster.TaskID) {
		if at, open := component[id]; !open || at != 0 {
			return
		}
		component[id] = to
		for _, d := range g.dependants[id] {
			assign(d, to)
		}
	}
	for _, id := range slices.Backward(order) {
		assign(id, id)
	}
	return component
}
