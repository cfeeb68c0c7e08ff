package board

import (
	"slices"
	"time"

	"muster"
	"muster/internal/state"
)

// graph is what the board derives from the tasks in its collection: who waits for whom, who is ready, and what Settle
// has to look at. It follows the collection change by change and does no I/O. The lock of the collection guards it.
type graph struct {
	highest muster.TaskID // the highest id ever seen, also of tasks that are gone
	ids     []muster.TaskID
	tasks   map[muster.TaskID]*node
	// dependants are the edges backwards: the tasks that have the key in dependsOn, by id. This is what Blocks says.
	dependants map[muster.TaskID][]muster.TaskID
	ready      queues
	unreadable map[muster.TaskID]bool
	gone       map[muster.TaskID]bool      // seen once, deleted since
	missing    map[muster.TaskID]time.Time // since when a blocker is known to be missing
	removed    map[muster.TaskID]bool      // marked as deleted by another program; Settle removes them

	dirty     map[muster.TaskID]bool // Settle compares them with the graph
	effects   map[muster.TaskID]bool // have effects that must still follow
	claimed   map[muster.TaskID]bool // in progress or landing
	hasCycles bool                   // there may be a cycle that was not there before
}

// node is one task of the graph.
type node struct {
	task    *muster.Task    // as it is stored; never changed
	on      []muster.TaskID // dependsOn, sorted, each once
	waiting int             // how many of on are not completed
	queued  bool            // it is in the queue of the role, at the slot
	role    string
	slot    slot
}

func (n *node) isDone() bool { return n.task.Status == muster.Completed }

func newGraph() *graph {
	return &graph{
		tasks: map[muster.TaskID]*node{}, dependants: map[muster.TaskID][]muster.TaskID{}, ready: queues{},
		unreadable: map[muster.TaskID]bool{}, gone: map[muster.TaskID]bool{},
		missing: map[muster.TaskID]time.Time{}, removed: map[muster.TaskID]bool{},
		dirty: map[muster.TaskID]bool{}, effects: map[muster.TaskID]bool{}, claimed: map[muster.TaskID]bool{},
	}
}

// onChange follows one change of the collection.
func (g *graph) onChange(c state.Change[muster.Task]) {
	id, _ := idOf(c.Key)
	g.highest = max(g.highest, id)
	switch {
	case c.Err != nil:
		g.forget(id)
		g.unreadable[id] = true
	case c.New == nil:
		g.forget(id)
		g.gone[id] = true
		delete(g.removed, id)
	case c.New.Status == deleted:
		g.forget(id)
		g.gone[id], g.removed[id] = true, true
	default:
		g.put(c.New)
	}
}

// put takes in a task as it is now.
func (g *graph) put(t *muster.Task) {
	id := t.ID
	n, known := g.tasks[id]
	if !known {
		n = &node{task: &muster.Task{}}
		g.tasks[id] = n
		at, _ := slices.BinarySearch(g.ids, id)
		g.ids = slices.Insert(g.ids, at, id)
		delete(g.gone, id)
		delete(g.removed, id)
		delete(g.unreadable, id)
		delete(g.missing, id)
	}
	was, wasDone := n.task.Status, known && n.isDone()
	on := set(t.DependsOn...)
	rewired := !slices.Equal(on, n.on)
	if rewired {
		g.removeEdges(id, n)
		g.addEdges(id, n, on)
	}
	n.task = t
	if !known || wasDone != n.isDone() {
		for _, d := range g.dependants[id] {
			if d == id {
				continue
			}
			if wasDone != n.isDone() {
				g.tasks[d].waiting += map[bool]int{true: -1, false: 1}[n.isDone()]
				g.place(d)
			}
			g.dirty[d] = true // its blockedBy
		}
	}
	n.waiting = 0
	for _, d := range on {
		if !g.isDone(d) {
			n.waiting++
		}
	}
	g.place(id)
	g.dirty[id] = true
	mark(g.effects, id, len(t.Effects) > 0)
	mark(g.claimed, id, t.Claimed())
	if t.Status == muster.Pending && n.waiting > 0 && (rewired || was != t.Status) {
		g.hasCycles = true
	}
}

// mark puts id into the set, or takes it out.
func mark(set map[muster.TaskID]bool, id muster.TaskID, in bool) {
	if in {
		set[id] = true
	} else {
		delete(set, id)
	}
}

// forget takes a task out of the graph. The edges of other tasks to it stay.
func (g *graph) forget(id muster.TaskID) {
	delete(g.unreadable, id)
	n, known := g.tasks[id]
	if !known {
		return
	}
	g.removeEdges(id, n)
	wasDone := n.isDone()
	g.unqueue(n)
	delete(g.tasks, id)
	delete(g.dirty, id)
	delete(g.effects, id)
	delete(g.claimed, id)
	if at, there := slices.BinarySearch(g.ids, id); there {
		g.ids = slices.Delete(g.ids, at, at+1)
	}
	for _, d := range g.dependants[id] {
		if wasDone {
			g.tasks[d].waiting++
			g.place(d)
		}
		g.dirty[d] = true
	}
}

// addEdges makes id a dependant of each of on.
func (g *graph) addEdges(id muster.TaskID, n *node, on []muster.TaskID) {
	n.on = on
	for _, d := range on {
		if at, there := slices.BinarySearch(g.dependants[d], id); !there {
			g.dependants[d] = slices.Insert(g.dependants[d], at, id)
		}
	}
}

// removeEdges takes id out of the dependants of its blockers.
func (g *graph) removeEdges(id muster.TaskID, n *node) {
	for _, d := range n.on {
		if at, there := slices.BinarySearch(g.dependants[d], id); there {
			g.dependants[d] = slices.Delete(g.dependants[d], at, at+1)
		}
		if len(g.dependants[d]) == 0 {
			delete(g.dependants, d)
		}
	}
}

// place puts the task into the queue that it belongs to now, or into none.
func (g *graph) place(id muster.TaskID) {
	n := g.tasks[id]
	queued := n.task.Status == muster.Pending && n.task.Owner == "" && n.waiting == 0
	at := slot{n.task.Priority, id}
	if !queued || n.slot != at || n.role != gate(n.task.ClaimRole) {
		g.unqueue(n)
	}
	if queued && !n.queued {
		n.queued, n.role, n.slot = true, gate(n.task.ClaimRole), at
		g.ready.add(n.role, n.slot)
	}
}

// unqueue takes the task out of its queue.
func (g *graph) unqueue(n *node) {
	if n.queued {
		g.ready.remove(n.role, n.slot)
		n.queued = false
	}
}

func (g *graph) isDone(id muster.TaskID) bool { n := g.tasks[id]; return n != nil && n.isDone() }

// exists reports whether there is a task of that id, readable or not.
func (g *graph) exists(id muster.TaskID) bool { return g.unreadable[id] || g.tasks[id] != nil }

// unfinished returns ids without those that are completed, sorted, each once.
func (g *graph) unfinished(ids []muster.TaskID) []muster.TaskID {
	return slices.DeleteFunc(set(ids...), g.isDone)
}

// blocks returns the dependants of a task, as a new list.
func (g *graph) blocks(id muster.TaskID) []muster.TaskID { return slices.Clone(g.dependants[id]) }

// view returns the task with the fields that are derived from the graph. It shares nothing with the cache that a caller
// could change.
func (g *graph) view(id muster.TaskID) muster.Task {
	n := g.tasks[id]
	t := *n.task
	t.DependsOn = slices.Clone(t.DependsOn)
	t.BlockedBy = nil
	if n.waiting > 0 {
		t.BlockedBy = g.unfinished(n.on)
	}
	t.Blocks = g.blocks(id)
	t.Effects = slices.Clone(t.Effects)
	if t.Landing != nil {
		l := *t.Landing
		t.Landing = &l
	}
	if t.Landed != nil {
		l := *t.Landed
		t.Landed = &l
	}
	return t
}
