package landing

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/journal"
)

// decision is what the queue has decided about a landing.
type decision struct {
	do     action        // what its owner does now: see landing.follow
	tip    string        // the target's, when it was decided
	landed muster.Landed // what landed, or what the check said of work that is to be reviewed
	result CheckResult   // of the check that is red
	task   muster.Task   // as the board has it; without an id: as the owner knows it
	err    error         // why it is not recorded, what git says of the merge, or what has displaced the target
}

// action is what the owner of a landing does after a decision.
type action int

const (
	doFail               action = iota
	doNothing                   // the work has landed, and the board says so
	doRecord                    // it has landed
	doLandNothing               // the target has everything of it
	doMerge                     // it conflicts with the target
	doExplainUnmergeable        // git cannot merge it with the target at all
	doReturnEmpty               // it would leave no file
	doReturnRed                 // the check failed on it
	doReturnDisplaced           // its lane has displaced the target
	doReview                    // the check has passed
	doEndClaim                  // the claim is over by the board
	doExplainStale              // the landing ref has moved
)

// guardedTarget is what the queue asks of the guard.
type guardedTarget interface {
	targetTip
	secure(ctx context.Context, lane muster.Name) (*Displaced, error)
	refuseUsers(context.Context) error
	announce(ctx context.Context, tip, commit string) error
	noteGoneInCheck(context.Context)
	lookAgain()
}

// queue decides about the landings of this process. Their owners wait in decide. While there are any, one goroutine,
// the drainer, lands them: see stack.go.
//
// Invariant: each landing in the queue is decided, or has left it: the drainer ends only when none is waiting, and the
// next one that comes starts another.
type queue struct {
	repo    *git.Repo
	board   *board.Board
	journal *journal.Journal
	target  guardedTarget
	records *records
	checks  *checker
	options *Options

	isUnsigned bool // people know that a signature could not be had; of the drainer, as cannotSign is
	cannotSign bool // the program that signs has not ended

	mu       sync.Mutex
	waiting  []*job                  // those that the drainer has not taken, or has put back
	present  int                     // how many owners wait for a decision, also of those in the stack
	drains   bool                    // there is a drainer
	giveUp   context.CancelCauseFunc // ends the drainer's work
	ended    chan struct{}           // closed when the drainer that was started last has ended
	sequence int                     // counts those that have come
}

// job is a landing in the queue.
type job struct {
	work
	position int           // the order in which it came
	decided  chan decision // has room for the one decision
	left     bool          // the owner does not wait any more; guarded by the queue's mutex
}

// decide queues the work, and returns what is decided about it. The end of ctx ends the wait, and not the landing.
func (q *queue) decide(ctx context.Context, w work) (d decision, err error) {
	j := q.add(ctx, w)
	select {
	case d = <-j.decided:
	case <-ctx.Done():
		isDecided := false
		if d, isDecided = q.leave(j, context.Cause(ctx)); !isDecided {
			q.awaitEnd()
			return d, context.Cause(ctx)
		}
	}
	if d.do == doFail {
		// Each owner finds out by itself whether it waits, tries again, or gives up.
		return d, cmp.Or(context.Cause(ctx), d.err)
	}
	return d, nil
}

// add queues work, and starts the drainer where none is at work.
func (q *queue) add(ctx context.Context, w work) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sequence++
	j := &job{work: w, position: q.sequence, decided: make(chan decision, 1)}
	q.waiting = append(q.waiting, j)
	q.present++
	if !q.drains {
		q.start(ctx)
	}
	return j
}

// start starts a drainer. It works for all who wait, so it ends when the last one of them has left, and not with ctx.
// The caller holds the mutex.
func (q *queue) start(ctx context.Context) {
	work, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	q.drains, q.giveUp = true, giveUp
	ended := make(chan struct{})
	q.ended = ended
	go func() {
		defer close(ended)
		q.drain(work)
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

// startAgain starts a drainer in the place of one that was ended, if a landing waits.
func (q *queue) startAgain(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drains = len(q.waiting) > 0; q.drains {
		q.start(ctx)
	}
}

// leave takes a job whose owner has gone out of the queue, unless it is decided.
func (q *queue) leave(j *job, why error) (d decision, isDecided bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case d = <-j.decided:
		return d, true
	default:
	}
	j.left = true
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
	if q.present--; q.present == 0 {
		q.giveUp(why)
	}
	return d, false
}

// answer gives the owner of a job its decision. It reports whether the owner is there to follow it.
func (q *queue) answer(j *job, d decision) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.decided <- d
	if !j.left {
		q.present--
	}
	return !j.left
}

func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

func (q *queue) putBack(jobs ...*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(slices.DeleteFunc(jobs, func(j *job) bool { return j.left }), q.waiting...)
}

// isOver reports whether none waits. Then the drainer has ended: the next one who comes starts another.
func (q *queue) isOver() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drains = len(q.waiting) > 0
	return !q.drains
}

func (q *queue) drain(ctx context.Context) {
	for {
		err := q.landAll(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			// All who waited have left. Whoever has come since knows nothing of that.
			q.startAgain(ctx)
			return
		}
		for _, j := range q.take() {
			q.answer(j, decision{do: doFail, err: err})
		}
		if q.isOver() {
			return
		}
	}
}

// landAll lands what is in the queue until it is empty, or until an error: landings that had begun are queued again.
func (q *queue) landAll(ctx context.Context) error {
	unlock, err := q.checks.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		s := stack{queue: q}
		if err := s.advance(ctx); err != nil {
			s.requeue()
			return err
		}
		if q.isOver() {
			return nil
		}
	}
}

// inOrder sorts jobs into the order in which they land: those that have come back before or were reviewed, because they
// have waited already; then those for which most tasks wait; then by the order in which they came.
func (q *queue) inOrder(ctx context.Context, jobs []*job) error {
	if len(jobs) < 2 {
		return nil
	}
	tasks, err := q.board.List(ctx)
	if err != nil {
		return err
	}
	waits := dependants(tasks)
	rank := func(j *job) int {
		if j.task.Rounds > 0 || j.approval != "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.task.Priority, a.task.Priority),
			cmp.Compare(waits[b.task.ID], waits[a.task.ID]), cmp.Compare(a.position, b.position))
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
