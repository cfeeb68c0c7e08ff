package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/text"
	"muster/llm"
)

// passOn is how long a member that was called to the board for nothing stays out of the
// queue: others go first, because it would be called for the same task at once.
const passOn = time.Second

// idling is a teammate between two work phases: what it shows, what it looks at, and what it
// waits for.
type idling struct {
	*self
	rest      idleRest
	hookStops int // how often in a row a hook has made the member go on
}

// idleRest is what one rest waits on. It begins empty, and is over with the next work phase.
type idleRest struct {
	reason      muster.IdleReason      // why the phase ended
	inbox       <-chan struct{}        // receives when mail may have come
	watchBoard  func() <-chan struct{} // the same for the board, which is watched from the first call
	leaveQueue  func()                 // gives up the place in the queue, if there is one
	backInQueue <-chan time.Time       // not nil: the member stays out of the queue until then
	deadline    time.Time              // of the idle timeout; zero: it has not begun
	called      bool                   // the queue has called the member
	timedOut    bool
	hooked      bool // the hooks of this rest have run
	triedTask   bool // the member has tried to begin a task since it was woken
}

// begin begins a rest, which ctx ends. The watches begin before the first facts are read, so that no change
// is missed. The phase's last message is sent before anybody can see that the member is idle.
func (i *idling) begin(ctx context.Context) error {
	c := i.phase.get()
	i.rest = idleRest{inbox: i.Post.Watch(ctx, i.name()), leaveQueue: func() {},
		watchBoard: sync.OnceValue(func() <-chan struct{} { return i.Board.Watch(ctx) }),
		reason:     c.idleReason(len(i.presence.openQuestions()) > 0, i.presence.Me())}
	return i.sendFinalMessage(ctx)
}

// sendFinalMessage mails the last message of the phase to the lead. Where the model was cut
// off there is none, and the lead is told why. A member that has stopped with its task in hand
// wakes the lead.
func (i *idling) sendFinalMessage(ctx context.Context) error {
	var words string
	var stop llm.Stop
	var reminded int
	i.phase.change(func(c *counters) { // the words are forgotten, so that they are sent once
		words, stop, reminded = c.words, c.stop, c.reminded
		c.words, c.stop = "", ""
	})
	mail := muster.Message{Type: muster.MailResult, From: i.name(), To: muster.Lead,
		Content: text.CutBytes(words, maxQuote)}
	if why := cutOffReason(i.name(), stop, words); why != "" {
		mail = muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, Content: why}
	}
	t, ok := i.claims.CurrentTask()
	if ok && stop == llm.StopEnd && reminded == maxReminders && !i.waits() {
		mail = muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, TaskID: t.ID,
			Content: fmt.Sprintf("%s has stopped with task #%d (%s) in hand, though it was reminded twice. Answer it "+
				"with send_message, or have it give the task back with request_shutdown. It said: %s",
				i.name(), t.ID, t.Subject, text.CutBytes(words, maxQuote))}
	}
	if mail.Content == "" || stop == llm.StopTools {
		return nil
	}
	_, err := i.Post.Send(ctx, mail)
	return err
}

// beginTask begins the task that the member has claimed and not read, or claims the next one.
// It reports whether there is one.
func (i *idling) beginTask(ctx context.Context) (begun bool, err error) {
	i.rest.triedTask = true
	text, key, err := i.claims.nextTask(ctx)
	if err != nil || text == "" {
		return false, err
	}
	i.hookStops = 0
	// A crash before the text is in the transcript leaves a claim that was not read: the key
	// is not noted there, and the member reads its task when it starts again.
	if err = i.conversation.wake(ctx); err == nil {
		err = i.compaction.beginTask(ctx, text, key)
	}
	return true, err
}

// wait shows that the member is idle, and waits until something may have changed that. Its frame is small, as
// is that of each caller, so that the stack of a member at rest is: there may be thousands.
func (i *idling) wait(ctx context.Context) error {
	turn, board, timeout, err := i.prepareWait(ctx)
	if err != nil {
		return err
	}
	r := &i.rest
	select {
	case <-ctx.Done():
	case <-r.inbox:
	case <-board:
	case <-i.jobs.Wake():
	case <-r.backInQueue:
		r.backInQueue = nil
	case <-turn:
		r.called = true
	case <-timeout:
		r.timedOut = true
	}
	return context.Cause(ctx)
}

// prepareWait shows that the member is idle, and returns what it waits for, beside mail and jobs. A member without
// a task waits in the queue for its turn at the board. It keeps its place until it has looked, so that nobody
// else is called for the same task.
func (i *idling) prepareWait(ctx context.Context) (turn, board <-chan struct{}, timeout <-chan time.Time, err error) {
	r := &i.rest
	r.leaveQueue()
	if r.called {
		r.backInQueue = time.After(passOn)
	}
	if r.timedOut || r.deadline.IsZero() {
		r.deadline = time.Now().Add(i.Limits.IdleTimeout)
	}
	r.called, r.timedOut, r.triedTask = false, false, false
	if err := i.markIdle(ctx, r.reason); err != nil {
		return nil, nil, nil, err
	}
	i.unload()
	// A member with a task claims no other, and must hear when its task is taken away. One
	// without a task is called by the queue, and needs no watch of its own.
	if _, busy := i.claims.CurrentTask(); busy {
		board = r.watchBoard()
	} else if r.backInQueue == nil {
		turn, r.leaveQueue = i.Queue.Enter(i.Record.Role)
	}
	if i.Limits.IdleTimeout > 0 {
		timeout = time.After(time.Until(r.deadline))
	}
	return turn, board, timeout, nil
}

// unload frees what only a member at work needs: its conversation, and what its model reads
// of its tools.
func (i *idling) unload() {
	i.conversation.script.Release()
	i.toolbox.made.Store(nil)
	i.phase.change(func(c *counters) { c.calls = nil })
}

// markIdle shows that the member is idle, and tells the lead if that is news. A member with a
// task whose background job runs is at work on it: the job's end wakes it.
func (i *idling) markIdle(ctx context.Context, why muster.IdleReason) error {
	if _, busy := i.claims.CurrentTask(); busy && i.jobs.Running()+i.jobs.Unannounced() > 0 {
		return i.presence.setStatus(ctx, muster.Working, "", "waits for its background job")
	}
	// The lead is told once, however often something wakes the member for nothing.
	was := i.presence.Me().Status
	if err := i.presence.setStatus(ctx, muster.Idle, why, ""); err != nil || was == muster.Idle {
		return err
	}
	_, err := i.Post.Send(ctx, muster.Message{Type: muster.MailIdle, From: i.name(), To: muster.Lead,
		Content: fmt.Sprintf("%s is idle (%s).", i.name(), why)})
	return err
}

// timeOut gives the task back and tells the lead that the member shuts down. The member does
// so only after it has looked into its inbox once more.
func (i *idling) timeOut(ctx context.Context) error {
	text := fmt.Sprintf("%s found nothing to do for %s and shuts down; spawn it again by name when there is work.",
		i.name(), i.Limits.IdleTimeout)
	if t, ok := i.claims.CurrentTask(); ok {
		text = fmt.Sprintf("%s was idle for %s with task #%d in hand and shuts down; the task is back on the board.",
			i.name(), i.Limits.IdleTimeout, t.ID)
	}
	// The task goes back before the lead is told of it, so that the lead finds it on the
	// board.
	if err := i.claims.release(ctx, "idle timeout of its owner", "", false); err != nil {
		return err
	}
	_, err := i.Post.Send(ctx, muster.Message{Type: muster.MailIdle, From: i.name(), To: muster.Lead, Content: text})
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	return i.presence.setStatus(ctx, muster.Idle, muster.IdleTimeout, "")
}

func (i *idling) facts(ctx context.Context) (f IdleFacts, err error) {
	if f.Shutdown, err = i.pendingShutdown(ctx); err != nil {
		return f, err
	}
	f.JobsFinished = i.jobs.Unannounced() > 0
	f.TriedTask, f.TimedOut = i.rest.triedTask, i.rest.timedOut
	if err = i.claims.check(ctx); isLostClaim(err) {
		f.Claim, err = LostClaim, nil
	} else if h := i.claims.held.get(); h.task.ID != 0 {
		f.Claim = NotYetRead
		if i.claims.isPresented(h) {
			f.Claim = Presented
		}
		f.Landing = h.task.Status == muster.Landing && !h.landingResumed && i.jobs.Running() == 0
	}
	if err == nil && f.TimedOut {
		f.KeepsClaim, err = i.keepsClaim(ctx)
	}
	return f, err
}

// pendingShutdown returns the shutdown request that waits for the member, or "".
func (i *idling) pendingShutdown(ctx context.Context) (muster.RequestID, error) {
	all, err := i.Requests.Pending(ctx)
	for _, r := range all {
		if r.Kind == muster.AskShutdown && r.To == i.name() {
			return r.ID, nil
		}
	}
	return "", err
}

// Queue hands ready tasks out to the idle members of one process, first come first served: k
// ready tasks wake k members. A member that is woken looks at the board itself, and the task
// that it does not claim is offered to the next one. The zero value is not ready; use
// NewQueue.
type Queue struct {
	// OnlyOwn reports whether the members of a role take only tasks that ask for it; nil: those of none.
	OnlyOwn func(role string) bool

	board   *board.Board
	recheck chan struct{}

	mu      sync.Mutex
	waiting map[string][]*waiter      // by role, who came first first
	offered map[muster.TaskID]*waiter // which member a task was offered to
}

// waiter is a member in the queue.
type waiter struct {
	turn chan struct{}
	task muster.TaskID // that it was offered; 0: none
}

// NewQueue makes a queue at the board; Serve keeps it moving.
func NewQueue(b *board.Board) *Queue {
	return &Queue{board: b, recheck: make(chan struct{}, 1), waiting: map[string][]*waiter{},
		offered: map[muster.TaskID]*waiter{}}
}

// Enter joins the queue. turn receives when there may be a task for the role; leave must be
// called when the member has looked, or stops waiting. Called again it does nothing.
func (q *Queue) Enter(role string) (turn <-chan struct{}, leave func()) {
	w := &waiter{turn: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[role] = append(q.waiting[role], w)
	nudge(q.recheck)
	return w.turn, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiting[role] = slices.DeleteFunc(q.waiting[role], func(o *waiter) bool { return o == w })
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
		if len(all) > 0 {
			roles = append(roles, role)
		}
	}
	q.mu.Unlock()
	for _, role := range roles {
		ready, err := q.board.Ready(ctx, role, q.OnlyOwn != nil && q.OnlyOwn(role))
		ok = ok && err == nil
		q.mu.Lock()
		for _, t := range ready {
			all := q.waiting[role]
			if len(all) == 0 {
				break
			}
			if q.offered[t.ID] == nil {
				w := all[0]
				q.waiting[role], w.task, q.offered[t.ID] = all[1:], t.ID, w
				w.turn <- struct{}{}
			}
		}
		q.mu.Unlock()
	}
	return ok
}
