package teammate

import (
	"container/list"
	"context"
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
	waiting map[string]*list.List     // by role, of *waiter
	offered map[muster.TaskID]*waiter // which member a task was offered to
}

// waiter is a member in the queue.
type waiter struct {
	turn  chan struct{}
	place *list.Element // in waiting, unless it was woken
	task  muster.TaskID // that it was offered; 0: none
}

// NewQueue makes a queue at the board; Serve keeps it moving.
func NewQueue(b *board.Board) *Queue {
	return &Queue{board: b, recheck: make(chan struct{}, 1), waiting: map[string]*list.List{},
		offered: map[muster.TaskID]*waiter{}}
}

// Enter joins the queue. turn receives when there may be a task for the role; leave must be
// called when the member has looked, or stops waiting. Called again it does nothing.
func (q *Queue) Enter(role string) (turn <-chan struct{}, leave func()) {
	w := &waiter{turn: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting[role]
	if all == nil {
		all = list.New()
		q.waiting[role] = all
	}
	w.place = all.PushBack(w)
	nudge(q.recheck)
	return w.turn, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		all.Remove(w.place)
		if w.task != 0 { // if the member did not claim it, it goes to the next one
			delete(q.offered, w.task)
			w.task = 0
			nudge(q.recheck)
		}
	}
}

// nudge sends a hint. One that waits is enough for any number of nudges.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Serve wakes waiting members as tasks become ready, until ctx ends. An offer writes nothing and
// reserves nothing: the board decides who gets the task. A wake-up that is lost costs time and
// no work.
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
	var roles []string
	q.mu.Lock()
	for role, all := range q.waiting {
		if all.Len() > 0 {
			roles = append(roles, role)
		}
	}
	q.mu.Unlock()
	for _, role := range roles {
		ready, err := q.board.Ready(ctx, role)
		ok = ok && err == nil
		q.mu.Lock()
		for _, t := range ready {
			first := q.waiting[role].Front()
			if first == nil {
				break
			}
			if q.offered[t.ID] == nil {
				w := q.waiting[role].Remove(first).(*waiter)
				w.task, q.offered[t.ID] = t.ID, w
				w.turn <- struct{}{}
			}
		}
		q.mu.Unlock()
	}
	return ok
}
