package teammate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/llm"
)

// Idle ends this phase after the round of tools.
func (m *Member) Idle(string) {
	m.mu.Lock()
	m.phase.over = true
	m.mu.Unlock()
}

const (
	// shortConversation is how few messages a conversation may have before the member is told anew who it is.
	shortConversation = 4
	// passOn is how long a member that was called to the board for nothing stays out of the queue.
	passOn = time.Second
)

// rest is a teammate's IDLE: mail first, then the board, until something comes (again) or the timeout shuts it down.
func (m *Member) rest(ctx context.Context) (End, bool, error) {
	why := m.restReason()
	if err := m.closingWords(ctx); err != nil {
		return End{}, false, err
	}
	if over, err := m.leaveAtRest(ctx); err != nil || over {
		return End{Text: "shut down while idle"}, false, err
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	inbox := m.Post.Watch(watch, m.name())
	if found, err := m.findWork(ctx); err != nil || found {
		return End{}, found, err
	}
	if err := m.goIdle(ctx, why); err != nil {
		return End{}, false, err
	}
	m.unload()
	timeout := time.NewTimer(max(m.IdleTimeout, time.Nanosecond))
	defer timeout.Stop()
	if m.IdleTimeout <= 0 {
		timeout.Stop()
	}
	var board <-chan struct{} // where the task in hand may be taken away; else it is the queue that calls
	var again <-chan time.Time
	for {
		var turn <-chan struct{}
		leave := func() {}
		if _, busy := m.Hand(); !busy && again == nil {
			turn, leave = m.Queue.Enter(m.name(), m.Record.Role)
		} else if busy && board == nil {
			board = m.Board.Watch(watch)
		}
		called, out := false, false
		select {
		case <-ctx.Done():
			leave()
			return End{}, false, context.Cause(ctx)
		case <-inbox:
		case <-board:
		case <-m.jobs.Wake():
		case <-again:
			again = nil
		case <-turn:
			called = true
		case <-timeout.C:
			out = true
		}
		over, err := m.leaveAtRest(ctx)
		found := false
		if err == nil && !over {
			found, err = m.findWork(ctx)
		}
		leave()
		switch {
		case err != nil:
			return End{}, false, err
		case over:
			return End{Text: "shut down while idle"}, false, nil
		case found:
			return End{}, true, nil
		case called:
			again = time.After(passOn) // others first, or it would be called for the same task at once
		case out:
			hold, err := m.holdsOn(ctx)
			if err != nil {
				return End{}, false, err
			}
			if !hold {
				return m.timeOut(ctx)
			}
			timeout.Reset(m.IdleTimeout)
		}
		if err := m.goIdle(ctx, why); err != nil { // what woke it came to nothing
			return End{}, false, err
		}
		m.unload()
	}
}

// unload frees what only a member at work needs: its conversation, and what its model reads of its tools.
func (m *Member) unload() {
	m.script.Release()
	m.mu.Lock()
	m.made, m.phase.pending = nil, nil
	m.mu.Unlock()
}

// restReason is why the phase ended.
func (m *Member) restReason() muster.IdleReason {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.asked) > 0:
		return muster.IdleMessages
	case m.phase.over:
		return muster.IdleTasks
	case m.phase.started.IsZero() && m.record.Status == muster.Idle: // it was idle before this process
		return m.record.IdleReason
	}
	return muster.IdleNoToolUse
}

// closingWords mails the last words of the phase to the lead, before the status says idle.
func (m *Member) closingWords(ctx context.Context) error {
	m.mu.Lock()
	text, stop := m.phase.words, m.phase.stop
	m.mu.Unlock()
	letter := muster.Message{Type: muster.MailResult, From: m.name(), To: muster.Lead, Content: clip(text, maxQuote)}
	if why := m.cutOff(); why != "" { // no closing words: somebody must hear of it
		letter = muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, Content: why}
	}
	m.mu.Lock()
	m.phase.words, m.phase.stop = "", ""
	m.mu.Unlock()
	if letter.Content == "" || stop == llm.StopTools {
		return nil
	}
	_, err := m.Post.Send(ctx, letter)
	return err
}

// goIdle shows that the member is idle, and tells the lead if that is news. One with a task in hand whose background job
// runs is at work on it: the job's end wakes it.
func (m *Member) goIdle(ctx context.Context, why muster.IdleReason) error {
	if _, busy := m.Hand(); busy && m.jobs.Running()+m.jobs.Unannounced() > 0 {
		return m.status(ctx, muster.Working, "", "waits for its background job")
	}
	was := m.Me().Status
	if err := m.status(ctx, muster.Idle, why, ""); err != nil || was == muster.Idle {
		return err
	}
	_, err := m.Post.Send(ctx, muster.Message{Type: muster.MailIdle, From: m.name(), To: muster.Lead,
		Content: fmt.Sprintf("%s is idle (%s).", m.name(), why)})
	return err
}

// findWork looks for mail, then finished jobs, then a task, and puts what it finds into the conversation.
func (m *Member) findWork(ctx context.Context) (bool, error) {
	if came, err := m.readMail(ctx); err != nil || came {
		return came, err
	}
	if announced, err := m.announceAtRest(ctx); err != nil || announced {
		return announced, err
	}
	if err := m.lostOr(m.held(ctx)); err != nil {
		return false, err
	}
	if came, err := m.endLanding(ctx); err != nil || came {
		return came, err
	}
	if m.handKnown() {
		return false, nil
	}
	text, mark, err := m.nextTask(ctx)
	if err != nil || text == "" {
		return false, m.lostOr(err)
	}
	if err := m.wake(ctx); err != nil {
		return false, err
	}
	return true, m.say(ctx, []muster.MessageID{mark}, text)
}

// readMail wakes for mail that is to be heard.
func (m *Member) readMail(ctx context.Context) (bool, error) {
	if wakes, err := m.mailWakes(ctx); err != nil || !wakes {
		return false, err
	}
	if err := m.wake(ctx); err != nil {
		return false, err
	}
	return m.deliver(ctx, true)
}

// handKnown reports whether the member has a task in hand and was told of it.
func (m *Member) handKnown() bool {
	t, ok := m.Hand()
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	return ok && (known == t.Fence || m.script.Delivered(claimMark(t)))
}

func (m *Member) announceAtRest(ctx context.Context) (bool, error) {
	if m.jobs.Unannounced() == 0 {
		return false, nil
	}
	if err := m.wake(ctx); err != nil {
		return false, err
	}
	return m.announce(ctx)
}

// wake loads the conversation again, and says who the member is where that may have been lost. The status comes before
// anything is taken from the inbox: at no moment does it look as if nobody had anything to do.
func (m *Member) wake(ctx context.Context) error {
	if err := m.status(ctx, muster.Working, "", ""); err != nil {
		return err
	}
	if err := m.script.Load(ctx); err != nil {
		return err
	}
	if messages := m.script.Messages(); len(messages) > 0 && len(messages) < shortConversation {
		return m.say(ctx, nil, m.identity())
	}
	return nil
}

// lostOr swallows an error that only says that somebody else was faster, or took the task away.
func (m *Member) lostOr(err error) error {
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrHeld) || errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	return err
}

// clip cuts text to at most n bytes, at a rune.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + " ..."
}
