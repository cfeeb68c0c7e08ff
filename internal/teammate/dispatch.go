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

// Queue hands ready tasks out to the idle members of one process, first come first served: k
// ready tasks wake k members. A member that is woken looks at the board itself, and the task
// that it does not claim is offered to the next one. The zero value is not ready; use
// NewQueue.
type Queue struct {
	board   *board.Board
	recheck chan struct{}

	mu      sync.Mutex
	waiting map[string]*list.List     // by role, none empty
	offered map[muster.TaskID]*waiter // which member a task was offered to
}

// waiter is a member in the queue.
type waiter struct {
	name    muster.Name
	role    string
	turn    chan struct{}
	element *list.Element // in waiting; nil: woken
}

// NewQueue makes a queue at the board; Serve keeps it moving.
func NewQueue(b *board.Board) *Queue {
	return &Queue{board: b, recheck: make(chan struct{}, 1), waiting: map[string]*list.List{},
		offered: map[muster.TaskID]*waiter{}}
}

// Enter joins the queue. turn receives when there may be a task; leave must be called when
// the member has looked, or stops waiting.
func (q *Queue) Enter(name muster.Name, role string) (turn <-chan struct{}, leave func()) {
	p := &waiter{name: name, role: role, turn: make(chan struct{}, 1)}
	q.mu.Lock()
	if q.waiting[role] == nil {
		q.waiting[role] = list.New()
	}
	p.element = q.waiting[role].PushBack(p)
	q.mu.Unlock()
	nudge(q.recheck)
	return p.turn, func() { q.leave(p) }
}

// leave takes a member out of the queue. The task that it was offered goes to the next one.
func (q *Queue) leave(p *waiter) {
	q.mu.Lock()
	q.remove(p)
	woken := false
	for id, w := range q.offered {
		if w == p {
			delete(q.offered, id)
			woken = true
		}
	}
	q.mu.Unlock()
	if woken {
		// The task that the member did not claim, if it is still there, goes to the next one.
		nudge(q.recheck)
	}
}

// remove takes a waiter out of those that wait. The lock is held.
func (q *Queue) remove(p *waiter) {
	if p.element == nil {
		return
	}
	all := q.waiting[p.role]
	all.Remove(p.element)
	p.element = nil
	if all.Len() == 0 {
		delete(q.waiting, p.role)
	}
}

// nudge sends a hint. One that waits is enough for any number of nudges.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Serve wakes waiting members as tasks become ready, until ctx ends.
func (q *Queue) Serve(ctx context.Context) {
	changed := q.board.Watch(ctx)
	for {
		var again <-chan time.Time
		if !q.offerAll(ctx) { // the board could not be read now: nobody else would say when it can
			again = time.After(passOn)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-q.recheck:
		case <-again:
		}
	}
}

// offerAll offers each ready task that nobody looks at to the first waiting member whose role
// may take it. It reports false when the board could not be read.
func (q *Queue) offerAll(ctx context.Context) (ok bool) {
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
			if q.offered[t.ID] == nil && !q.offer(role, t.ID) {
				break
			}
		}
		q.mu.Unlock()
	}
	return ok
}

// offer wakes the first waiting member of the role for a task; it reports false when none is
// left. The lock is held.
func (q *Queue) offer(role string, id muster.TaskID) bool {
	all := q.waiting[role]
	if all == nil {
		return false
	}
	p := all.Front().Value.(*waiter)
	q.remove(p)
	q.offered[id] = p
	p.turn <- struct{}{}
	return true
}
