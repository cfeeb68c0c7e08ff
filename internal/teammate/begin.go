package teammate

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/transcript"
	"muster/llm"
)

// begin opens the conversation where it stands, answers what was left unanswered, and says whether there is work.
func (m *Member) begin(ctx context.Context) (work bool, err error) {
	if m.script, err = m.take(ctx); err != nil {
		return false, err
	}
	if err := m.findHand(ctx); err != nil {
		return false, err
	}
	m.clearDeserted(ctx)
	mark, err := m.openingMark(ctx)
	if err != nil {
		return false, err
	}
	said := m.script.Delivered(mark)
	if m.lead() && !said { // a new run: a new conversation, whatever the last one left open
		return true, m.open(ctx, mark, len(m.script.Messages()) > 0)
	}
	if err := m.answerLeftovers(ctx); err != nil {
		return false, err
	}
	messages := m.script.Messages()
	m.todo.Restore(messages)
	if len(messages) == 0 || !said { // new, or spawned again: then after all that it knows
		return true, m.open(ctx, mark, false)
	}
	m.mu.Lock()
	over := m.phase.over // what it was at when the process ended has ended the phase
	m.mu.Unlock()
	if over || messages[len(messages)-1].Role != llm.User {
		return false, nil
	}
	_, err = m.deliver(ctx, false) // what came meanwhile enters before the model is asked, as at any boundary
	return true, err
}

// take opens the conversation and makes it this process's. A process that hosted the member before may be stopped, not
// dead: it may have written until now, and does so no more. This one may be it, too, awake again before it came so far:
// so the record is asked once more.
func (m *Member) take(ctx context.Context) (*transcript.Transcript, error) {
	for try := 1; ; try++ {
		t, err := transcript.Open(ctx, m.Store.Log(), m.name())
		if err != nil || t.Pos() == 0 {
			return t, err
		}
		if err = t.TakeOver(ctx, m.Record.Host); err == nil {
			return t, m.hosted(ctx)
		}
		if !errors.Is(err, muster.ErrFenced) || try == 10 {
			return nil, err
		}
	}
}

// hosted is Fenced when another process hosts the member by now.
func (m *Member) hosted(ctx context.Context) error {
	r, err := m.Roster.Get(ctx, m.name())
	if err == nil && (r.Host != m.Record.Host || r.Epoch != m.Record.Epoch) {
		return muster.Errorf(muster.Fenced, "%s is hosted by another process now", m.name())
	}
	return err
}

// openingMark notes in the transcript that the first words were said: the goal of this run to the lead, the prompt of
// this spawn to a teammate.
func (m *Member) openingMark(ctx context.Context) (muster.MessageID, error) {
	if m.lead() {
		run, err := m.Run(ctx)
		return muster.MessageID(fmt.Sprintf("run-%.6f", run.StartedAt)), err
	}
	// The prompt alone would not do: it may be spawned again with the same words.
	return muster.MessageID(fmt.Sprintf("spawn-%08x%s", crc32.ChecksumIEEE([]byte(m.Record.Prompt)), m.script.LastMark())), nil
}

// open writes the first words: who it is, what it was spawned with, and its first task if it may take one. afresh: a new
// conversation starts with them.
func (m *Member) open(ctx context.Context, mark muster.MessageID, afresh bool) error {
	words := m.Record.Prompt
	if !m.lead() { // the lead's are the runtime's own, a teammate's are a model's or a person's
		words = mailbox.Escape(words)
	}
	parts := []string{m.identity(), words}
	marks := []muster.MessageID{mark}
	if !m.lead() {
		text, claim, err := m.nextTask(ctx)
		if err := m.lostOr(err); err != nil {
			return err
		}
		if text != "" {
			parts, marks = append(parts, text), append(marks, claim)
		}
	}
	if afresh {
		return m.write(ctx, m.script.Fresh, marks, parts)
	}
	return m.say(ctx, marks, parts...)
}

func (m *Member) identity() string { return prompt.Identity(m.name(), m.Record.Role, m.Team) }

// say appends the runtime's words to the conversation; marks make it known that they were said.
func (m *Member) say(ctx context.Context, marks []muster.MessageID, texts ...string) error {
	return m.write(ctx, m.script.User, marks, texts)
}

func (m *Member) write(ctx context.Context, enter func(context.Context, []llm.Part, []muster.MessageID) error, marks []muster.MessageID, texts []string) error {
	var parts []llm.Part
	for _, t := range texts {
		if t != "" {
			parts = append(parts, llm.Text{Text: t})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	defer failpoint.Hit("teammate.told")
	return enter(ctx, parts, marks)
}
