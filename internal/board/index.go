package board

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster"
)

// index is the board as this process last saw it. It follows the table's changes, so that a warm process reads only
// what is new, and it knows what each change touches: who is ready now, and what Settle has to look at.
type index struct {
	mark    muster.Mark
	highest muster.TaskID // the highest id ever seen, also of what is gone
	ids     []muster.TaskID
	tasks   map[muster.TaskID]*entry
	// dependants are the edges backwards: who has the key in dependsOn.
	dependants map[muster.TaskID][]muster.TaskID
	ready      queues
	bad        map[muster.TaskID]unreadable
	gone       map[muster.TaskID]bool      // seen once, deleted since
	missing    map[muster.TaskID]time.Time // waited for, not there, since when
	removed    map[muster.TaskID]bool      // marked deleted by another program, to be removed

	doubtful []unreadable // to be read once more before they count as unreadable

	dirty   map[muster.TaskID]bool // to be compared with the graph
	effects map[muster.TaskID]bool // have effects to settle
	claimed map[muster.TaskID]bool // in progress or landing
	tangled bool                   // the graph may have a cycle that was not there before
}

type entry struct {
	task    muster.Task
	on      []muster.TaskID // dependsOn, sorted, each once
	waiting int             // how many of on are not completed
	queued  bool
	role    string // the queue it is in,
	slot    slot   // and where
}

func (e *entry) done() bool { return e.task.Status == muster.Completed }

// unreadable is a document that cannot be read.
type unreadable struct {
	id  muster.TaskID
	key string
	rev muster.Rev
	why string
}

func newIndex() *index {
	return &index{
		tasks: map[muster.TaskID]*entry{}, dependants: map[muster.TaskID][]muster.TaskID{}, ready: queues{},
		bad: map[muster.TaskID]unreadable{}, gone: map[muster.TaskID]bool{}, missing: map[muster.TaskID]time.Time{},
		removed: map[muster.TaskID]bool{},
		dirty:   map[muster.TaskID]bool{}, effects: map[muster.TaskID]bool{}, claimed: map[muster.TaskID]bool{},
	}
}

// refresh brings the index up to date.
func (b *Board) refresh(ctx context.Context) error {
	b.mu.Lock()
	bad, err := b.ix.pull(ctx, b.tasks)
	b.mu.Unlock()
	if down := b.sayCorrupt(ctx, bad); err == nil {
		err = down
	}
	return err
}

// pull takes in what changed and returns what has become unreadable since.
func (x *index) pull(ctx context.Context, t muster.Table) ([]unreadable, error) {
	var end error
	var list []news
	for c, err := range t.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			end = err
			break
		}
		x.mark = max(x.mark, c.Mark)
		id, ok := idOf(c.Key)
		if !ok {
			continue
		}
		x.highest = max(x.highest, id)
		if list = append(list, news{id: id, doc: c.Doc, err: err}); len(list) == batch {
			x.takeAll(list)
			list = list[:0]
		}
	}
	x.takeAll(list)
	if len(x.doubtful) == 0 {
		return nil, end
	}
	// A program without our lock may be in the middle of writing: what cannot be read is read once more.
	if err := pause(ctx, halfWritten); err != nil {
		return nil, err
	}
	var bad []unreadable
	for len(x.doubtful) > 0 {
		u := x.doubtful[0]
		doc, err := t.Get(ctx, u.key)
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			return bad, err
		}
		x.doubtful = x.doubtful[1:]
		if errors.Is(err, muster.ErrNotFound) {
			doc, err = muster.Doc{Key: u.key}, nil
		}
		if err == nil {
			u.rev = doc.Rev
			n := news{id: u.id, doc: doc}
			if n.decode(); n.err == nil {
				x.take(n)
			}
			err = n.err
		}
		if err != nil {
			if was, known := x.bad[u.id]; !known || was.rev != u.rev {
				bad = append(bad, u)
			}
			x.forget(u.id)
			x.bad[u.id] = u
		}
	}
	return bad, end
}

// takeAll takes in documents; those that cannot be read are doubtful.
func (x *index) takeAll(list []news) {
	decodeAll(list)
	for _, n := range list {
		if n.err != nil {
			x.doubtful = append(x.doubtful, unreadable{n.id, n.doc.Key, n.doc.Rev, n.err.Error()})
			continue
		}
		x.take(n)
	}
}

// take takes in one document: a task, or that it is gone.
func (x *index) take(n news) {
	switch id := n.id; {
	case n.doc.Rev == muster.None:
		x.forget(id)
		x.gone[id] = true
		delete(x.removed, id)
	case n.task.Status == deleted:
		x.forget(id)
		x.gone[id], x.removed[id] = true, true
	default:
		x.put(n.task)
	}
}

func (x *index) put(t muster.Task) {
	id := t.ID
	e, known := x.tasks[id]
	if !known {
		e = &entry{}
		x.tasks[id] = e
		at, _ := slices.BinarySearch(x.ids, id)
		x.ids = slices.Insert(x.ids, at, id)
		delete(x.gone, id)
		delete(x.removed, id)
		delete(x.bad, id)
		delete(x.missing, id)
	}
	was, wasDone := e.task.Status, known && e.done()
	on := set(t.DependsOn...)
	rewired := !slices.Equal(on, e.on)
	if rewired {
		x.unwire(id, e)
		e.on = on
		for _, d := range on {
			at, there := slices.BinarySearch(x.dependants[d], id)
			if !there {
				x.dependants[d] = slices.Insert(x.dependants[d], at, id)
			}
			x.dirty[d] = true // its blocks
		}
	}
	e.task = t
	if !known || wasDone != e.done() {
		for _, d := range x.dependants[id] {
			if d == id {
				continue
			}
			if wasDone != e.done() {
				x.tasks[d].waiting += map[bool]int{true: -1, false: 1}[e.done()]
				x.place(d)
			}
			x.dirty[d] = true // its blockedBy
		}
	}
	e.waiting = 0
	for _, d := range on {
		if !x.done(d) {
			e.waiting++
		}
	}
	x.place(id)
	x.dirty[id] = true
	mark(x.effects, id, len(t.Effects) > 0)
	mark(x.claimed, id, t.Claimed())
	if t.Status == muster.Pending && e.waiting > 0 && (rewired || was != t.Status) {
		x.tangled = true
	}
}

func mark(set map[muster.TaskID]bool, id muster.TaskID, in bool) {
	if in {
		set[id] = true
	} else {
		delete(set, id)
	}
}

// forget takes a task out.
func (x *index) forget(id muster.TaskID) {
	delete(x.bad, id)
	e, known := x.tasks[id]
	if !known {
		return
	}
	x.unwire(id, e)
	wasDone := e.done()
	e.task.Status = deleted
	x.place(id)
	delete(x.tasks, id)
	delete(x.dirty, id)
	delete(x.effects, id)
	delete(x.claimed, id)
	if at, there := slices.BinarySearch(x.ids, id); there {
		x.ids = slices.Delete(x.ids, at, at+1)
	}
	for _, d := range x.dependants[id] {
		if wasDone {
			x.tasks[d].waiting++
			x.place(d)
		}
		x.dirty[d] = true
	}
}

// unwire takes id out of the dependants of its blockers.
func (x *index) unwire(id muster.TaskID, e *entry) {
	for _, d := range e.on {
		if at, there := slices.BinarySearch(x.dependants[d], id); there {
			x.dependants[d] = slices.Delete(x.dependants[d], at, at+1)
		}
		if len(x.dependants[d]) == 0 {
			delete(x.dependants, d)
		}
		if x.tasks[d] != nil {
			x.dirty[d] = true
		}
	}
}

// place puts the task into the queue that it belongs to now, or into none.
func (x *index) place(id muster.TaskID) {
	e := x.tasks[id]
	queued := e.task.Status == muster.Pending && e.task.Owner == "" && e.waiting == 0
	at := slot{e.task.Priority, id}
	if e.queued && (!queued || e.slot != at || e.role != gate(e.task.ClaimRole)) {
		x.ready.remove(e.role, e.slot)
		e.queued = false
	}
	if queued && !e.queued {
		e.queued, e.role, e.slot = true, gate(e.task.ClaimRole), at
		x.ready.add(e.role, e.slot)
	}
}

func (x *index) done(id muster.TaskID) bool { e := x.tasks[id]; return e != nil && e.done() }

// exists says whether there is a task of that id, readable or not.
func (x *index) exists(id muster.TaskID) bool {
	_, bad := x.bad[id]
	return bad || x.tasks[id] != nil
}

// unfinished is ids without those that are completed, sorted, each once.
func (x *index) unfinished(ids []muster.TaskID) []muster.TaskID {
	return slices.DeleteFunc(set(ids...), x.done)
}

// view is the task with what is derived from the graph. It shares nothing that the index will change.
func (x *index) view(id muster.TaskID) muster.Task {
	e := x.tasks[id]
	t := e.task
	t.DependsOn = slices.Clone(t.DependsOn)
	t.BlockedBy = nil
	if e.waiting > 0 {
		t.BlockedBy = x.unfinished(e.on)
	}
	t.Blocks = slices.Clone(x.dependants[id])
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

// Unreadable is a task whose document cannot be read.
type Unreadable struct {
	ID  muster.TaskID
	Why string
}

// Corrupt lists the tasks that could not be read when the board was last looked at, by id.
func (b *Board) Corrupt() []Unreadable {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Unreadable
	for id, u := range b.ix.bad {
		out = append(out, Unreadable{id, u.why})
	}
	slices.SortFunc(out, func(a, b Unreadable) int { return int(a.ID - b.ID) })
	return out
}
