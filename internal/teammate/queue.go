package teammate

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
)

// Queue is where the idle members of one process wait for their turn at the board, first come first served: k ready
// tasks wake k of them, and who cannot take passes on. The zero value is not ready; use NewQueue.
type Queue struct {
	board *board.Board
	look  chan struct{}

	mu      sync.Mutex
	waiting map[string]*list.List    // places by role, none empty
	out     map[muster.TaskID]*place // the task a woken member is looking at
}

type place struct {
	name muster.Name
	role string
	turn chan struct{}
	at   *list.Element // in waiting; nil: woken
}

// NewQueue makes a queue at the board; Serve keeps it moving.
func NewQueue(b *board.Board) *Queue {
	return &Queue{board: b, look: make(chan struct{}, 1), waiting: map[string]*list.List{}, out: map[muster.TaskID]*place{}}
}

// Enter joins the queue. turn receives when there may be a task; leave must be called when the member has looked, or
// stops waiting.
func (q *Queue) Enter(name muster.Name, role string) (turn <-chan struct{}, leave func()) {
	p := &place{name: name, role: role, turn: make(chan struct{}, 1)}
	q.mu.Lock()
	if q.waiting[role] == nil {
		q.waiting[role] = list.New()
	}
	p.at = q.waiting[role].PushBack(p)
	q.mu.Unlock()
	q.nudge()
	return p.turn, func() { q.leave(p) }
}

func (q *Queue) leave(p *place) {
	q.mu.Lock()
	q.remove(p)
	woken := false
	for id, w := range q.out {
		if w == p {
			delete(q.out, id)
			woken = true
		}
	}
	q.mu.Unlock()
	if woken {
		q.nudge() // what it did not take goes to the next
	}
}

// remove takes a place out of those that wait. The lock is held.
func (q *Queue) remove(p *place) {
	if p.at == nil {
		return
	}
	all := q.waiting[p.role]
	all.Remove(p.at)
	p.at = nil
	if all.Len() == 0 {
		delete(q.waiting, p.role)
	}
}

func (q *Queue) nudge() {
	select {
	case q.look <- struct{}{}:
	default:
	}
}

// Serve wakes waiting members as tasks become ready, until ctx ends.
func (q *Queue) Serve(ctx context.Context) {
	changed := q.board.Watch(ctx)
	for {
		var again <-chan time.Time
		if !q.serve(ctx) {
			again = time.After(passOn)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-q.look:
		case <-again:
		}
	}
}

// serve gives each ready task that nobody looks at to the first waiting member whose role may take it. It reports false
// when the board could not be read.
func (q *Queue) serve(ctx context.Context) (ok bool) {
	ok = true
	q.mu.Lock()
	roles := slices.Collect(maps.Keys(q.waiting))
	q.mu.Unlock()
	for _, role := range roles {
		ready, err := q.board.Ready(ctx, role)
		if err != nil {
			ok = false
			continue
		}
		q.mu.Lock()
		for _, t := range ready {
			if q.out[t.ID] == nil && !q.wakeOne(role, t.ID) {
				break
			}
		}
		q.mu.Unlock()
	}
	return ok
}

// wakeOne wakes the first of the role; it reports false when none is left.
func (q *Queue) wakeOne(role string, id muster.TaskID) bool {
	all := q.waiting[role]
	if all == nil {
		return false
	}
	p := all.Front().Value.(*place)
	q.remove(p)
	q.out[id] = p
	p.turn <- struct{}{}
	return true
}
