package teammate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// parkTime is how long a member is parked the first time in a phase when its model stays
// overloaded; the second time it is twice as long, and so on.
const parkTime = time.Minute

// answerCalls answers the calls that a crash, Ctrl-C or the user left without a result. Any
// call that records do not answer may or may not have happened: the runtime never runs it
// again, and the model reads unknown. With resume it may also wait for the end of what a call
// had begun.
func (m *Member) answerCalls(ctx context.Context, resume bool, unknown string) error {
	for _, c := range m.conversation.script.Unanswered() {
		var r llm.Result
		var known bool
		var err error
		if t := m.toolbox.recoverer(c.Name); t != nil {
			r, known, err = t.Recover(ctx, c, resume)
		}
		if err != nil && resume {
			return err
		}
		if err != nil || !known {
			r = llm.ErrorResult("%s", unknown)
		}
		r.ID = c.ID
		if err := m.conversation.script.Result(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// do ends a turn that the user stopped: every call gets its answer, and the model is
// told why it was cut off.
func (AnswerStopped) do(ctx context.Context, m *Member) error {
	err := m.answerCalls(ctx, false, "The user stopped this turn; the outcome is unknown: check first.")
	if err == nil {
		// The words of a turn that was cut off are no last message, and the user speaks next.
		m.phase.change(func(c *counters) { c.onHold, c.words, c.stop = true, "", "" })
		m.emit(loop.ReplyDiscarded{})
		err = m.conversation.remind(ctx, "The user stopped your turn here. Hear first what they want.")
	}
	if err != nil {
		return err
	}
	return m.beginRest(ctx)
}

// do hands the turn to the user.
func (AskUser) do(ctx context.Context, m *Member) error {
	// For people only: without it the lead still waits for the user.
	_ = m.Journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: journal.RunNote,
		Fields: map[string]any{"text": "the lead met " + m.err.Error() + "; say how to go on"}})
	m.phase.change(func(c *counters) { c.onHold = true })
	return m.beginRest(ctx)
}

// do releases the task. It counts as an attempt.
func (ReleaseTask) do(ctx context.Context, m *Member) error {
	if err := m.claims.release(ctx, m.err.Error(), m.finalMessage(), true); err != nil {
		return err
	}
	return m.beginRest(ctx)
}

// finalMessage returns what the model said last. After a restart it is read from the
// transcript.
func (s *self) finalMessage() string {
	if c := s.phase.get(); c.words != "" {
		return c.words
	}
	if messages := s.conversation.script.Messages(); len(messages) > 0 && !s.conversation.owesReply() {
		return textOf(messages[len(messages)-1])
	}
	return "" // something was said to it since
}

// do gives the task back and tells the lead why.
func (GiveUp) do(ctx context.Context, m *Member) error {
	why := clip(m.err.Error(), maxQuote)
	// The next owner reads why in the task's note; it counts as an attempt, so that a task
	// which no model can do does not go round for ever.
	t, had := m.claims.CurrentTask()
	if err := m.claims.release(ctx, "its owner's model failed", why, true); err != nil {
		return err
	}
	m.end = &End{Text: why}
	text := fmt.Sprintf("%s is shut down: %s", m.name(), why)
	if had {
		text += fmt.Sprintf("\nIts task #%d is back on the board.", t.ID)
	}
	_, err := m.Post.Send(ctx, muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead,
		Content: text})
	return err
}

// do waits, visibly, for a model that stayed overloaded after all tries.
func (Park) do(ctx context.Context, m *Member) error {
	m.stage = Retrying
	// The wait is in memory only: a member that is restarted asks its model at once.
	var wait time.Duration
	m.phase.change(func(c *counters) {
		c.parks++
		wait = time.Duration(c.parks) * parkTime
	})
	m.presence.onModelWait(time.Now().Add(wait), m.err) //nolint:contextcheck // It writes with a context of its own.
	if clock.Sleep(ctx, wait) != nil {
		return context.Cause(ctx)
	}
	m.presence.onModelReply(ctx)
	return nil
}

// do says who the member is, its task, and what the lane holds. The lead also gets its goal and the open tasks,
// because it has forgotten what it made.
func (RestartConversation) do(ctx context.Context, m *Member) error {
	m.stage = Retrying
	texts := []string{m.conversation.identity(),
		prompt.Reminder("Your conversation had grown too long and starts again here.")}
	var marks []muster.MessageID
	if m.isLead() {
		p, err := m.Progress(ctx)
		if err != nil {
			return err
		}
		texts = append(texts, m.record.Prompt)
		if tasks := slices.Concat(p.Open, p.NeedsAttention); len(tasks) > 0 {
			text := "These tasks are on the board:"
			for _, t := range tasks {
				text += "\n" + prompt.TaskLine(t)
			}
			texts = append(texts, text)
		}
	}
	if t, ok := m.claims.CurrentTask(); ok {
		text, key, err := m.claims.taskPrompt(ctx, t)
		if err != nil {
			return err
		}
		texts, marks = append(texts, text), append(marks, key)
	} else if !m.isLead() {
		texts = append(texts, m.record.Prompt)
	}
	m.phase.change(func(c *counters) { c.restarted, c.replies = true, 0 })
	return m.conversation.enter(ctx, m.conversation.script.Fresh, marks, texts)
}
