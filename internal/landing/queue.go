package landing

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"muster"
)

// queue holds the landings of this process whose owners wait. While there are any, one goroutine, the drainer, lands
// them: see stack.go. The owners wait in await, and each does itself what is decided about its work.
//
// Invariant: whoever is in the queue is decided, or has left it: the drainer ends only when it finds nobody waiting,
// and the next one who comes starts another.
type queue struct {
	mu sync.Mutex
	// waiting are those that the drainer has not taken, or has put back.
	waiting []*attempt
	// present is how many owners wait for a decision, of those that are waiting and of those in the stack.
	present int
	// drains says that there is a drainer, and giveUp ends its work.
	drains bool
	giveUp context.CancelCauseFunc
	ended  chan struct{} // closed when the drainer that was started last has ended
	// sequence counts those that have come.
	sequence int
}

// turn is what an attempt has in the queue.
type turn struct {
	place   int           // the order in which it came
	decided chan struct{} // closed when next is set
	// next is what its owner does now. It is called in the goroutine of the owner.
	next func(context.Context, *attempt) error
	left bool // the owner does not wait any more; guarded by the queue's mutex
}

// await queues the attempt, waits until something is decided about it, and does that. The error is errMoved when it has
// to queue again. The end of ctx ends the wait, and not the landing.
func (a *attempt) await(ctx context.Context) error {
	// The drainer has a copy: the owner may go while that works.
	job := *a
	job.turn = turn{decided: make(chan struct{})}
	q := &a.Lander.queue
	q.add(ctx, a.Lander, &job)
	for isDecided := false; !isDecided; {
		select {
		case <-job.decided:
			isDecided = true
		case <-ctx.Done():
			if q.leave(&job, context.Cause(ctx)) {
				q.awaitEnd()
				return context.Cause(ctx)
			}
		}
	}
	*a = job
	return a.next(ctx, a)
}

// add queues a job, and starts the drainer where none is at work.
func (q *queue) add(ctx context.Context, l *Lander, job *attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sequence++
	job.place = q.sequence
	q.waiting = append(q.waiting, job)
	q.present++
	if !q.drains {
		q.start(ctx, l)
	}
}

// start starts a drainer. It works for all who wait, so it ends when the last one of them has left, and not with ctx.
// The caller holds the mutex.
func (q *queue) start(ctx context.Context, l *Lander) {
	work, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	q.drains, q.giveUp = true, giveUp
	ended := make(chan struct{})
	q.ended = ended
	go func() {
		defer close(ended)
		drain(work, l)
	}()
}

// awaitEnd waits, when nobody waits for a decision any more, until the drainer has ended: what it has begun to record
// is recorded then, and nothing of a landing outlives the last of its owners. It gives up after a while.
func (q *queue) awaitEnd() {
	q.mu.Lock()
	ended, isLast := q.ended, q.present == 0
	q.mu.Unlock()
	if !isLast {
		return
	}
	select {
	case <-ended:
	case <-time.After(maxEnd):
	}
}

// maxEnd is longer than the last writes of a landing may take.
const maxEnd = 10 * time.Second

// startAgain starts a drainer in the place of one that was ended, if somebody waits.
func (q *queue) startAgain(ctx context.Context, l *Lander) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drains = len(q.waiting) > 0; q.drains {
		q.start(ctx, l)
	}
}

// leave takes a job whose owner has gone out of the queue. It reports whether the job was undecided.
func (q *queue) leave(job *attempt, why error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-job.decided:
		return false
	default:
	}
	job.left = true
	q.waiting = slices.DeleteFunc(q.waiting, func(other *attempt) bool { return other == job })
	if q.present--; q.present == 0 {
		q.giveUp(why)
	}
	return true
}

// decide says what the owner of a job has to do now. It reports whether the owner is there to do it.
func (q *queue) decide(job *attempt, next func(context.Context, *attempt) error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	job.next = next
	close(job.decided)
	if !job.left {
		q.present--
	}
	return !job.left
}

// take takes all who wait.
func (q *queue) take() []*attempt {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// putBack lets jobs wait again.
func (q *queue) putBack(jobs ...*attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(slices.DeleteFunc(jobs, func(job *attempt) bool { return job.left }), q.waiting...)
}

// isOver reports whether nobody waits. Then the drainer has ended: the next one who comes starts another.
func (q *queue) isOver() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drains = len(q.waiting) > 0
	return !q.drains
}

// drain lands what is in the queue until nobody waits.
func drain(ctx context.Context, l *Lander) {
	for isDrained := false; !isDrained; {
		err := landAll(ctx, l)
		if err != nil && ctx.Err() != nil {
			// All who waited have left. Whoever has come since knows nothing of that.
			l.queue.startAgain(ctx, l)
			return
		}
		if err != nil {
			// Each owner decides by itself whether it waits, tries again, or gives up.
			for _, job := range l.queue.take() {
				l.queue.decide(job, func(ctx context.Context, _ *attempt) error {
					return cmp.Or(context.Cause(ctx), err)
				})
			}
		}
		isDrained = err == nil || l.queue.isOver()
	}
}

// landAll lands what is in the queue until it is empty, or until an error: landings that had begun are queued again.
func landAll(ctx context.Context, l *Lander) error {
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		s := stack{Lander: l}
		if err := s.advance(ctx); err != nil {
			s.requeue()
			return err
		}
		if l.queue.isOver() {
			return nil
		}
	}
}

// inOrder sorts jobs into the order in which they land: those that have come back before or were reviewed, because they
// have waited already; then those for which most tasks wait; then by the order in which they came.
func inOrder(ctx context.Context, l *Lander, jobs []*attempt) error {
	if len(jobs) < 2 {
		return nil
	}
	tasks, err := l.board.List(ctx)
	if err != nil {
		return err
	}
	waits := dependants(tasks)
	rank := func(a *attempt) int {
		if a.v.Task.Rounds > 0 || a.approval != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(jobs, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.v.Task.Priority, a.v.Task.Priority),
			cmp.Compare(waits[b.v.Task.ID], waits[a.v.Task.ID]), cmp.Compare(a.place, b.place))
	})
	return nil
}

// dependants returns how many open tasks wait for each task, directly or not.
func dependants(tasks []muster.Task) map[muster.TaskID]int {
	direct := map[muster.TaskID][]muster.TaskID{}
	for _, t := range tasks {
		if t.Open() {
			for _, on := range t.DependsOn {
				direct[on] = append(direct[on], t.ID)
			}
		}
	}
	count := map[muster.TaskID]int{}
	for id := range direct {
		seen := map[muster.TaskID]bool{id: true}
		for next := []muster.TaskID{id}; len(next) > 0; next = next[1:] {
			for _, t := range direct[next[0]] {
				if !seen[t] {
					seen[t] = true
					next = append(next, t)
				}
			}
		}
		count[id] = len(seen) - 1
	}
	return count
}
