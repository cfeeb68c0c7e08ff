package board

import (
	"cmp"
	"maps"
	"slices"

	"muster"
	"muster/internal/state"
)

// graph is what the board derives from the tasks in its collection: who waits for whom, who is ready, and
// what Settle has to look at. It follows the collection change by change and does no I/O. The lock of the
// collection guards it.
type graph struct {
	highest muster.TaskID           // the highest id ever seen, also of tasks that are gone
	tasks   map[muster.TaskID]*node // the tasks that can be read
	// dependants are the edges backwards: the tasks that have the key in dependsOn, sorted. This is what
	// Blocks says. A key need not be a task: another program may have written an edge to a task that is not
	// there.
	dependants map[muster.TaskID][]muster.TaskID
	ready      map[string]*queue      // the tasks that can be claimed now, by roleKey of the role that they ask for
	unreadable map[muster.TaskID]bool // tasks whose document cannot be read; they block like unfinished ones
	gone       map[muster.TaskID]bool // tasks that this process has seen and that have been deleted since

	dirty    map[muster.TaskID]bool // tasks that Settle has to compare with the graph
	effects  map[muster.TaskID]bool // tasks with effects that must still follow
	claimed  map[muster.TaskID]bool // tasks that are in progress or landing
	owning   map[muster.TaskID]bool // those of claimed that name files
	claiming map[muster.TaskID]bool // tasks with files that this process is about to claim
}

// node is one version of one task in the graph. A newer version of the task gets a new node.
type node struct {
	task    *muster.Task    // as it is stored; never changed
	on      []muster.TaskID // dependsOn, sorted, each once; never changed
	isReady bool            // it is in its queue of graph.ready, or will be
}

// absent stands for a task that is not in the graph. It is never changed.
var absent = &node{task: &muster.Task{}}

func (n *node) isDone() bool { return n.task.Status == muster.Completed }

func newGraph() *graph {
	return &graph{
		tasks: map[muster.TaskID]*node{}, dependants: map[muster.TaskID][]muster.TaskID{},
		ready:      map[string]*queue{},
		unreadable: map[muster.TaskID]bool{}, gone: map[muster.TaskID]bool{},
		dirty: map[muster.TaskID]bool{}, effects: map[muster.TaskID]bool{}, claimed: map[muster.TaskID]bool{},
		owning: map[muster.TaskID]bool{}, claiming: map[muster.TaskID]bool{},
	}
}

// onChange follows one change of the collection. A task that cannot be read, is deleted, or is marked as
// deleted by another program leaves the graph. The edges of other tasks to it stay, and block them like an
// unfinished task until Settle drops them.
func (g *graph) onChange(c state.Change[muster.Task]) {
	id, _ := idOf(c.Key)
	g.highest = NextID(g.highest+1, id) - 1
	is := absent
	if c.New != nil && c.New.Status != deleted {
		is = &node{task: c.New, on: set(c.New.DependsOn...)}
	}
	g.replace(id, is)
	mark(g.unreadable, id, c.Err != nil)
	mark(g.gone, id, is == absent && c.Err == nil)
}

// replace puts the node is in the place of the one that the task had, if it had one. With absent the task
// leaves the graph. replace keeps the graph consistent with that one change: the edges and the place in ready
// of the task itself and of those that wait for it. Its cost depends on the number of their edges and, by a
// few bytes each, on the number of the ready tasks, but not on the size of the board.
func (g *graph) replace(id muster.TaskID, is *node) {
	was := cmp.Or(g.tasks[id], absent)
	if !slices.Equal(was.on, is.on) {
		for _, d := range was.on {
			at, _ := slices.BinarySearch(g.dependants[d], id)
			if g.dependants[d] = slices.Delete(g.dependants[d], at, at+1); len(g.dependants[d]) == 0 {
				delete(g.dependants, d)
			}
		}
		for _, d := range is.on {
			at, _ := slices.BinarySearch(g.dependants[d], id)
			g.dependants[d] = slices.Insert(g.dependants[d], at, id)
		}
	}
	g.setReady(was, false)
	if is != absent {
		g.tasks[id] = is
		g.place(is)
	} else {
		delete(g.tasks, id)
	}
	if was == absent || is == absent || was.isDone() != is.isDone() {
		for _, d := range g.dependants[id] {
			g.place(g.tasks[d])
			g.dirty[d] = true // its stored blockedBy may be wrong now
		}
	}
	mark(g.dirty, id, is != absent)
	mark(g.effects, id, len(is.task.Effects) > 0)
	mark(g.claimed, id, is.task.Claimed())
	mark(g.owning, id, is.task.Claimed() && len(is.task.Files) > 0)
}

// mark adds id to the set, or removes it from there.
func mark(set map[muster.TaskID]bool, id muster.TaskID, in bool) {
	if in {
		set[id] = true
	} else {
		delete(set, id)
	}
}

// place puts the task into its queue of ready tasks or takes it out. A task is ready exactly when it is pending,
// has no owner, and all its blockers are completed.
func (g *graph) place(n *node) {
	g.setReady(n, n.task.Status == muster.Pending && n.task.Owner == "" && !g.waits(n))
}

// waits reports whether a blocker of the task is not completed.
func (g *graph) waits(n *node) bool {
	return slices.ContainsFunc(n.on, func(d muster.TaskID) bool { return !g.isDone(d) })
}

func (g *graph) isDone(id muster.TaskID) bool { n := g.tasks[id]; return n != nil && n.isDone() }

// exists reports whether there is a task of that id, readable or not.
func (g *graph) exists(id muster.TaskID) bool { return g.unreadable[id] || g.tasks[id] != nil }

// unusedID returns the first id, from next on, that no task has or had. It passes over those for which another
// program's task waits: a new task is not the one that is meant.
func (g *graph) unusedID(next muster.TaskID) muster.TaskID {
	id := max(next, g.highest+1)
	for g.dependants[id] != nil {
		id++
	}
	return id
}

// ids returns the tasks that can be read, sorted.
func (g *graph) ids() []muster.TaskID { return slices.Sorted(maps.Keys(g.tasks)) }

// unfinished returns ids without those that are completed, sorted, each once.
func (g *graph) unfinished(ids []muster.TaskID) []muster.TaskID {
	return slices.DeleteFunc(set(ids...), g.isDone)
}

// view returns the task with the fields that are derived from the graph. It copies everything that a caller
// could change, because the cache is shared.
func (g *graph) view(id muster.TaskID) muster.Task {
	n := g.tasks[id]
	t := *n.task // BlockedBy, as stored, may be behind; who lists the board gets it as it should be
	t.DependsOn = slices.Clone(t.DependsOn)
	t.BlockedBy = nil
	if g.waits(n) {
		t.BlockedBy = g.unfinished(n.on)
	}
	t.Blocks = slices.Clone(g.dependants[id])
	t.Effects = slices.Clone(t.Effects)
	t.Files = slices.Clone(t.Files)
	if t.Landing != nil {
		t.Landing = new(*t.Landing)
	}
	if t.Landed != nil {
		t.Landed = new(*t.Landed)
	}
	return t
}

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
