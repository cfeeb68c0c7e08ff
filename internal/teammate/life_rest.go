package teammate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/hooks"
	"muster/internal/text"
	"muster/internal/view"
	"muster/llm"
)

type idleRest struct {
	reason    muster.IdleReason // why the phase ended
	inbox     <-chan struct{}   // receives when mail may have come
	board     <-chan struct{}   // the same for the board
	deadline  time.Time         // of the idle timeout; zero: it has not begun
	timedOut  bool
	hooked    bool // the hooks of this rest have run
	triedTask bool // the member has tried to begin a task since it was woken
}

// beginIdle begins a rest, which ctx ends. Its watches begin before the first facts are read: no change is missed.
func (m *Member) beginIdle(ctx context.Context) error {
	c := m.phase.get()
	m.rest = idleRest{inbox: m.conversation.watch(ctx), board: m.claims.watch(ctx),
		reason: c.idleReason(len(m.presence.openQuestions()) > 0, m.presence.Me())}
	return m.sendFinalMessage(ctx)
}

// sendFinalMessage mails the last message of the phase to the lead, or why there is none.
func (m *Member) sendFinalMessage(ctx context.Context) error {
	var words string
	var stop llm.Stop
	var reminded int
	m.phase.change(func(c *counters) { // the words are forgotten, so that they are sent once
		words, stop, reminded = c.words, c.stop, c.reminded
		c.words, c.stop = "", ""
	})
	kind, about, said := muster.MailResult, muster.TaskID(0), text.CutBytes(words, maxQuote)
	if why := cutOffReason(m.record.Name, stop, words); why != "" {
		kind, said = muster.MailError, why
	}
	t, ok := m.claims.CurrentTask()
	if ok && stop == llm.StopEnd && reminded == maxReminders && !m.waits() {
		kind, about = muster.MailError, t.ID
		said = fmt.Sprintf("%s has ended its turn with task #%d (%s) in hand. Answer it with send_message, or have it "+
			"give the task back with request_shutdown. It said: %s",
			m.record.Name, t.ID, t.Subject, text.CutBytes(words, maxQuote))
	}
	if said == "" || stop == llm.StopTools {
		return nil
	}
	return m.diary.tellLead(ctx, kind, about, said)
}

func (m *Member) beginTask(ctx context.Context) (begun bool, err error) {
	m.rest.triedTask = true
	text, key, err := m.claims.nextTask(ctx)
	if err != nil || text == "" {
		return false, err
	}
	m.hookStops = 0
	// After a crash before the text is in the transcript the member reads its task when it starts again.
	err = m.conversation.wake(ctx)
	switch {
	case err != nil:
	case m.start.Opened:
		err = m.compaction.beginTask(ctx, text, key)
	default:
		err = m.begin(ctx, opens{task: text, key: key})
	}
	return true, err
}

// waitForWork shows that the member is idle, and waits for mail, a job, the idle timeout, or a change of the board.
func (m *Member) waitForWork(ctx context.Context) error {
	r := &m.rest
	if r.timedOut || r.deadline.IsZero() {
		r.deadline = time.Now().Add(m.limits.IdleTimeout)
	}
	r.timedOut, r.triedTask = false, false
	if err := m.markIdle(ctx, r.reason); err != nil {
		return err
	}
	// What holds for one phase: what the model reads of its tools, and the calls that were counted.
	m.toolbox.unload()
	m.phase.change(func(c *counters) { c.calls = nil })
	var timeout <-chan time.Time
	if m.limits.IdleTimeout > 0 {
		timeout = time.After(time.Until(r.deadline))
	}
	select {
	case <-ctx.Done():
	case <-r.inbox:
	case <-r.board:
	case <-m.jobs.Wake():
	case <-timeout:
		r.timedOut = true
	}
	return context.Cause(ctx)
}

// markIdle shows that the member is idle, and tells the lead. One whose background job runs for its task is at work.
func (m *Member) markIdle(ctx context.Context, why muster.IdleReason) error {
	if _, busy := m.claims.CurrentTask(); busy && m.jobs.Running()+m.jobs.Unannounced() > 0 {
		return m.presence.setStatus(ctx, muster.Working, "", "waits for its background job")
	}
	// The lead is told once, however often something wakes the member for nothing.
	was := m.presence.Me().Status
	if err := m.presence.setStatus(ctx, muster.Idle, why, ""); err != nil || was == muster.Idle {
		return err
	}
	return m.diary.tellLead(ctx, muster.MailIdle, 0, fmt.Sprintf("%s is idle: %s.", m.record.Name,
		view.IdleReason(m.record.Name, string(why))))
}

// timeOut gives the task back and tells the lead that the member shuts down, which it does after one more look into its
// inbox.
func (m *Member) timeOut(ctx context.Context) error {
	text := fmt.Sprintf("%s found nothing to do for %s and shuts down; spawn it again by name when there is work.",
		m.record.Name, m.limits.IdleTimeout)
	if t, ok := m.claims.CurrentTask(); ok {
		text = fmt.Sprintf("%s was idle for %s with task #%d in hand and shuts down; the task is back on the board.",
			m.record.Name, m.limits.IdleTimeout, t.ID)
	}
	// The task goes back before the lead is told of it, so that the lead finds it on the board.
	if err := m.claims.release(ctx, "idle timeout of its owner", "", false); err != nil {
		return err
	}
	err := m.diary.tellLead(ctx, muster.MailIdle, 0, text)
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	return m.presence.setStatus(ctx, muster.Idle, muster.IdleTimeout, "")
}

func (m *Member) idleFacts(ctx context.Context) (f IdleFacts, err error) {
	if f.Shutdown, err = m.pendingShutdown(ctx); err != nil {
		return f, err
	}
	f.JobsFinished = m.jobs.Unannounced() > 0
	f.TriedTask, f.TimedOut = m.rest.triedTask, m.rest.timedOut
	if err = m.claims.check(ctx); isLostClaim(err) {
		f.Claim, err = LostClaim, nil
	} else if _, ok := m.claims.CurrentTask(); ok {
		f.Claim = NotYetRead
		if m.claims.hasReadTask() {
			f.Claim = Presented
		}
		f.Landing = m.claims.isLandingCutOff() && m.jobs.Running() == 0
	}
	if err == nil && f.TimedOut {
		f.KeepsClaim, err = m.keepsClaim(ctx)
	}
	return f, err
}

func (m *Member) keepsClaim(ctx context.Context) (bool, error) {
	if m.jobs.Running() > 0 {
		return true, nil
	}
	return m.team.mayWork(ctx, m.presence.Me(), m.presence.openQuestions())
}

func (m *Member) pendingShutdown(ctx context.Context) (muster.RequestID, error) {
	all, err := m.requests.Pending(ctx)
	for _, r := range all {
		if r.Kind == muster.AskShutdown && r.To == m.record.Name {
			return r.ID, nil
		}
	}
	return "", err
}

func (m *Member) idleHooks(ctx context.Context) (goesOn bool, err error) {
	if m.rest.hooked || m.hookStops == maxHookStops || !m.hooks.has(hooks.TeammateIdle) {
		return false, nil
	}
	m.rest.hooked = true
	dir, err := m.claims.dir(ctx)
	if err != nil {
		return false, ignoreLostClaim(err)
	}
	o, err := m.hooks.run(ctx, hooks.TeammateIdle, dir, nil, stopFields(m.hookStops > 0, ""))
	if err != nil || !o.Blocked {
		return false, err
	}
	m.hookStops++
	if err := m.conversation.wake(ctx); err != nil {
		return false, err
	}
	return true, m.conversation.remind(ctx, "A hook of the user asks you to continue: %s",
		text.EscapeTags(o.Reason))
}

// waits reports whether the member waits for something and has not simply stopped.
func (m *Member) waits() bool {
	return len(m.presence.openQuestions()) > 0 || m.jobs.Running() > 0 || m.lead.toldStuck
}
