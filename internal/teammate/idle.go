package teammate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/text"
	"muster/llm"
)

// idling is a teammate between two work phases: what it shows, what it looks at, and what it
// waits for.
type idling struct {
	*self
	rest      idleRest
	hookStops int // how often in a row a hook has made the member go on
}

// idleRest is what one rest waits on. It begins empty, and is over with the next work phase.
type idleRest struct {
	reason    muster.IdleReason // why the phase ended
	inbox     <-chan struct{}   // receives when mail may have come
	board     <-chan struct{}   // the same for the board
	deadline  time.Time         // of the idle timeout; zero: it has not begun
	timedOut  bool
	hooked    bool // the hooks of this rest have run
	triedTask bool // the member has tried to begin a task since it was woken
}

// begin begins a rest, which ctx ends. The watches begin before the first facts are read, so that no change
// is missed. The phase's last message is sent before anybody can see that the member is idle.
func (i *idling) begin(ctx context.Context) error {
	c := i.phase.get()
	i.rest = idleRest{inbox: i.Post.Watch(ctx, i.name()), board: i.Board.Watch(ctx),
		reason: c.idleReason(len(i.presence.openQuestions()) > 0, i.presence.Me())}
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
	kind, about, said := muster.MailResult, muster.TaskID(0), text.CutBytes(words, maxQuote)
	if why := cutOffReason(i.name(), stop, words); why != "" {
		kind, said = muster.MailError, why
	}
	t, ok := i.claims.CurrentTask()
	if ok && stop == llm.StopEnd && reminded == maxReminders && !i.waits() {
		kind, about = muster.MailError, t.ID
		said = fmt.Sprintf("%s has stopped with task #%d (%s) in hand, though it was reminded twice. Answer it "+
			"with send_message, or have it give the task back with request_shutdown. It said: %s",
			i.name(), t.ID, t.Subject, text.CutBytes(words, maxQuote))
	}
	if said == "" || stop == llm.StopTools {
		return nil
	}
	return i.diary.tellLead(ctx, kind, about, said)
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

// wait shows that the member is idle, and waits until something may have changed that: mail, a job, the idle timeout,
// or a change of the board, by which a task may be ready for it, or its own task taken away.
func (i *idling) wait(ctx context.Context) error {
	r := &i.rest
	if r.timedOut || r.deadline.IsZero() {
		r.deadline = time.Now().Add(i.Limits.IdleTimeout)
	}
	r.timedOut, r.triedTask = false, false
	if err := i.markIdle(ctx, r.reason); err != nil {
		return err
	}
	// What holds for one phase: what the model reads of its tools, and the calls that were counted.
	i.toolbox.unload()
	i.phase.change(func(c *counters) { c.calls = nil })
	var timeout <-chan time.Time
	if i.Limits.IdleTimeout > 0 {
		timeout = time.After(time.Until(r.deadline))
	}
	select {
	case <-ctx.Done():
	case <-r.inbox:
	case <-r.board:
	case <-i.jobs.Wake():
	case <-timeout:
		r.timedOut = true
	}
	return context.Cause(ctx)
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
	return i.diary.tellLead(ctx, muster.MailIdle, 0, fmt.Sprintf("%s is idle (%s).", i.name(), why))
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
	err := i.diary.tellLead(ctx, muster.MailIdle, 0, text)
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
