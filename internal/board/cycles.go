package board

import (
	"maps"
	"slices"

	"muster"
)

// path returns a shortest path from one task to another, both included, or nil when there is none. on
// returns the blockers of a task. It is a breadth-first search, so of several cycles people are shown one
// that is short.
func path(from, to muster.TaskID, on func(muster.TaskID) []muster.TaskID) []muster.TaskID {
	came := map[muster.TaskID]muster.TaskID{from: from} // the task before each one on the way
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
				c, open := component[d]
				return !open || c != component[id]
			})
		}
		var cycle []muster.TaskID
		for _, d := range on(id) {
			if way := path(d, id, on); cycle == nil || len(way) < len(cycle) {
				cycle = way
			}
		}
		for _, d := range cycle {
			placed[d] = true
		}
		if cycle != nil {
			out = append(out, cycle)
		}
	}
	return out
}

// components gives each unfinished task the number of its strongly connected component: two tasks have the
// same number exactly if each waits for the other, directly or through others. It is Tarjan's algorithm,
// which looks at each edge once.
func (g *graph) components() map[muster.TaskID]int {
	component, lowest := map[muster.TaskID]int{}, map[muster.TaskID]int{}
	var stack []muster.TaskID // the tasks that were visited and have no component yet
	var visit func(muster.TaskID)
	visit = func(id muster.TaskID) {
		number, at := len(lowest), len(stack)
		lowest[id] = number
		stack = append(stack, id)
		for _, d := range g.tasks[id].on {
			if g.tasks[d] == nil || g.isDone(d) {
				continue
			}
			if _, visited := lowest[d]; !visited {
				visit(d)
			}
			if _, complete := component[d]; !complete {
				lowest[id] = min(lowest[id], lowest[d])
			}
		}
		if lowest[id] == number { // nothing from here on leads back to an earlier task
			for _, d := range stack[at:] {
				component[d] = number
			}
			stack = stack[:at]
		}
	}
	for id, n := range g.tasks {
		if _, visited := lowest[id]; !visited && !n.isDone() {
			visit(id)
		}
	}
	return component
}
