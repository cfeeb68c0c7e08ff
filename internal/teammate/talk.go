package teammate

import (
	"context"

	"muster"
)

// Talk is a conversation of the user with the lead, as the lead sees it. While it is open the
// run does not end by itself: where it would, the lead listens.
type Talk interface {
	// Closed returns a channel that is closed when the user says no more; the run then ends
	// like any other.
	Closed() <-chan struct{}
	// Turn is called when the lead's turn begins. Its context ends with muster.CauseTurn when
	// the user stops the turn.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is called for each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest is called when the lead's turn is over and the prompt is the user's. done says
	// that nothing is open and nobody is at work.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead that lives in
// another one.
const TalkLease = "talk"

// hasConversation reports whether the user is in a conversation with the lead, here or in
// another process.
func (s *Services) hasConversation(ctx context.Context) bool {
	if s.inTalk() {
		return true
	}
	held, err := s.Store.Leases().Held(ctx, TalkLease)
	return err == nil && held
}

// inTalk reports whether a conversation is open in this process.
func (s *Services) inTalk() bool {
	if s.Talk == nil {
		return false
	}
	select {
	case <-s.Talk.Closed():
		return false
	default:
		return true
	}
}

// turnContext returns the context of a work phase: in a conversation the user can stop the
// lead's.
func (m *Member) turnContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if !m.isLead() || !m.inTalk() {
		return ctx, func() {}
	}
	return m.Talk.Turn(ctx)
}
