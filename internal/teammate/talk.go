package teammate

import (
	"context"
	"errors"

	"muster"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// Talk is a conversation of the user with the lead, as the lead sees it. While it is open the run does not end by
// itself: where it would, the lead listens.
type Talk interface {
	// Closed is closed when the user says no more; the run then ends like any other.
	Closed() <-chan struct{}
	// Turn is told that the lead's turn begins. The context ends with muster.CauseTurn when the user stops it.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is told each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest is told that the lead's turn is over and the prompt is the user's. done: nothing is open and nobody works.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead that lives in another one.
const TalkLease = "talk"

// talking reports whether the user is in a conversation with the lead, here or in another process.
func (r Rooms) talking(ctx context.Context) bool {
	if r.inTalk() {
		return true
	}
	held, err := r.Store.Leases().Held(ctx, TalkLease)
	return err == nil && held
}

// inTalk reports whether a conversation is open in this process.
func (r Rooms) inTalk() bool {
	if r.Talk == nil {
		return false
	}
	select {
	case <-r.Talk.Closed():
		return false
	default:
		return true
	}
}

// turn is the context of one work phase: in a conversation the user can stop the lead's.
func (m *Member) turn(ctx context.Context) (context.Context, context.CancelFunc) {
	if !m.lead() || !m.inTalk() {
		return ctx, func() {}
	}
	return m.Talk.Turn(ctx)
}

// stopped ends a turn that the user stopped: every call gets its answer, and the model is told why it was cut off.
func (m *Member) stopped(ctx context.Context) error {
	for _, c := range m.script.Unanswered() {
		r, known, err := m.recoverCall(ctx, c, false)
		if err != nil || !known {
			r = llm.ErrorResult("The user stopped this turn; the outcome is unknown: check first.")
		}
		r.ID = c.ID
		if err := m.script.Result(ctx, r); err != nil {
			return err
		}
	}
	m.mu.Lock()
	m.phase.held, m.phase.words, m.phase.stop = true, "", ""
	clear(m.unsaid)
	m.mu.Unlock()
	m.Emit(loop.ReplyDiscarded{})
	return m.say(ctx, nil, prompt.Reminder("The user stopped your turn here. Hear first what they want."))
}

// limited is told of a limit that the lead met in a conversation: there it ends the turn, not the run.
func (m *Member) limited(ctx context.Context, err error) bool {
	if !m.lead() || !m.inTalk() || !errors.Is(err, errTurns) && !errors.Is(err, errLoop) {
		return false
	}
	m.note(ctx, "the lead met "+err.Error()+"; say how to go on")
	m.mu.Lock()
	m.phase.held = true
	m.mu.Unlock()
	return true
}

func (m *Member) note(ctx context.Context, text string) {
	_ = m.Journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

// heardUser tells the conversation what of the user has been heard.
func (m *Member) heardUser(mail []muster.Message) {
	if !m.lead() || m.Talk == nil {
		return
	}
	for _, msg := range mail {
		if msg.From == muster.User {
			m.Talk.Heard(msg.ID)
		}
	}
}

// yours hands the prompt to the user.
func (m *Member) yours(done bool) {
	if m.inTalk() {
		m.Talk.Rest(done)
	}
}

// listen waits, where a run would end, for whatever may change that: mail, the board, the end of the conversation.
func (m *Member) listen(ctx context.Context, hints <-chan struct{}, done bool) error {
	if err := m.status(ctx, muster.Idle, muster.IdleMessages, "waits for you"); err != nil {
		return err
	}
	m.yours(done)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hints:
	case <-m.Talk.Closed():
	}
	return nil
}
