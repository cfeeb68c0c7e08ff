package board

import (
	"slices"

	"muster"
)

// path returns a shortest way from one task to another along what on says, both included; nil when there is none.
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

// cycles returns the groups of unfinished tasks that wait for each other, each in the order in which they wait.
func (g *graph) cycles() [][]muster.TaskID {
	stuck := g.stuck()
	g.dropUnawaited(stuck)
	// What is left is in a cycle or on a way between two. It is in one if a way leads from it back to itself.
	var out [][]muster.TaskID
	placed := map[muster.TaskID]bool{}
	for _, id := range g.ids {
		if _, left := stuck[id]; !left || placed[id] {
			continue
		}
		if cycle := g.cycleThrough(id, stuck); cycle != nil {
			for _, d := range cycle {
				placed[d] = true
			}
			out = append(out, cycle)
		}
	}
	return out
}

// stuck returns the unfinished tasks that could never be finished one after the other, with the number of blockers that
// hold each: those in a cycle, and those that wait for one.
func (g *graph) stuck() map[muster.TaskID]int {
	open := map[muster.TaskID]int{}
	var free []muster.TaskID
	for id, n := range g.tasks {
		if n.isDone() {
			continue
		}
		for _, d := range n.on {
			if b := g.tasks[d]; b != nil && !b.isDone() {
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
		for _, d := range g.dependants[id] {
			if _, left := open[d]; !left {
				continue
			}
			if open[d]--; open[d] == 0 {
				delete(open, d)
				free = append(free, d)
			}
		}
	}
	return open
}

// dropUnawaited removes from stuck, again and again, the tasks that no other one in it waits for: they wait for a cycle
// and are in none.
func (g *graph) dropUnawaited(stuck map[muster.TaskID]int) {
	waiters := map[muster.TaskID]int{}
	var free []muster.TaskID
	for id := range stuck {
		for _, d := range g.dependants[id] {
			if _, left := stuck[d]; left {
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
		delete(stuck, id)
		for _, d := range g.tasks[id].on {
			if _, left := stuck[d]; left {
				if waiters[d]--; waiters[d] == 0 {
					free = append(free, d)
				}
			}
		}
	}
}

// cycleThrough returns the shortest way from id back to itself over stuck tasks, with id once; nil when there is none.
func (g *graph) cycleThrough(id muster.TaskID, stuck map[muster.TaskID]int) []muster.TaskID {
	on := func(id muster.TaskID) []muster.TaskID {
		return slices.DeleteFunc(slices.Clone(g.tasks[id].on), func(d muster.TaskID) bool {
			_, left := stuck[d]
			return !left
		})
	}
	var best []muster.TaskID
	for _, d := range on(id) {
		if way := path(d, id, on); way != nil && (best == nil || len(way) < len(best)) {
			best = way
		}
	}
	return best
}
