package teammate

import (
	"context"
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
	waiting []*place
	out     map[muster.TaskID]*place // the task a woken member is looking at
}

type place struct {
	name muster.Name
	role string
	turn chan struct{}
}

// NewQueue makes a queue at the board; Serve keeps it moving.
func NewQueue(b *board.Board) *Queue {
	return &Queue{board: b, look: make(chan struct{}, 1), out: map[muster.TaskID]*place{}}
}

// Enter joins the queue. turn receives when there may be a task; leave must be called when the member has looked, or
// stops waiting.
func (q *Queue) Enter(name muster.Name, role string) (turn <-chan struct{}, leave func()) {
	p := &place{name: name, role: role, turn: make(chan struct{}, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	q.mu.Unlock()
	q.nudge()
	return p.turn, func() { q.leave(p) }
}

func (q *Queue) leave(p *place) {
	q.mu.Lock()
	for i, w := range q.waiting {
		if w == p {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			break
		}
	}
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
	roles := map[string]bool{}
	for _, p := range q.waiting {
		roles[p.role] = true
	}
	q.mu.Unlock()
	for role := range roles {
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
	for i, p := range q.waiting {
		if p.role == role {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.out[id] = p
			p.turn <- struct{}{}
			return true
		}
	}
	return false
}
