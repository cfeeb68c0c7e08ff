package teammate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/transcript"
)

// leadTurn is the end of the lead's turn: what decides what follows it, and what the lead
// waits for then.
type leadTurn struct {
	*self
	presence     *presence
	conversation *conversation
	phase        *phase
	wait         *leadWait

	stop    context.CancelFunc // ends the watch; nil: there is none
	changed <-chan struct{}    // mail, the board, the roster or requests have changed
	message string             // the lead's last message
}

// begin ends the turn. The watch begins before the first facts are read, so that no change is
// missed.
func (t *leadTurn) begin(ctx context.Context, message string) {
	watch, stop := context.WithCancel(ctx)
	t.stop, t.changed, t.message = stop, t.wait.watch(watch), message
}

// end ends the watch.
func (t *leadTurn) end() {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// facts reads what decides what follows the turn.
func (t *leadTurn) facts(ctx context.Context) (f TurnFacts, err error) {
	c := t.phase.snapshot()
	f = TurnFacts{Message: t.message, CutOff: cutOffReason(t.name(), c.stop, c.words),
		ToldStuck: t.wait.toldStuck, OnHold: c.onHold}
	// What the user says is heard whatever else holds. In a conversation the lead hears
	// everybody, unless the user has stopped it to speak first.
	everybody := t.inTalk() && !c.onHold
	f.ToHear, err = t.conversation.hasMailFrom(ctx, func(n muster.Name) bool { return everybody || n == muster.User })
	if err == nil && !f.ToHear {
		f.Progress, err = t.Progress(ctx)
	}
	return f, err
}

// hear delivers the mail that the lead hears whatever else holds.
func (t *leadTurn) hear(ctx context.Context) (heard bool, err error) {
	t.wait.toldStuck = false
	return t.conversation.deliverWaking(ctx)
}

// tellStuck tells the lead why nothing can move. If it ends its turn again, the run ends.
func (t *leadTurn) tellStuck(ctx context.Context, open int, why string) error {
	t.wait.toldStuck = true
	return t.conversation.remind(ctx, "You ended your turn, but %s and nothing can move: %s. "+
		"Do something about it, or end again to stop the run with this work left.", openText(open), mailbox.Escape(why))
}

// sleep waits until something needs the lead, and wakes it with that.
func (t *leadTurn) sleep(ctx context.Context) error {
	// In a conversation the user gets the prompt back while the team works on.
	t.handOver(false)
	text, _, err := t.wait.sleep(ctx, false)
	if err != nil {
		return err
	}
	if err := t.conversation.remind(ctx, "%s", mailbox.Escape(text)); err != nil {
		return err
	}
	// News that has collected in the meantime enters with what woke the lead.
	_, err = t.conversation.deliver(ctx)
	return err
}

// listen waits, where a run would end, for whatever may change that: mail, the board, the end
// of the conversation.
func (t *leadTurn) listen(ctx context.Context, done bool) error {
	if err := t.presence.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for you"); err != nil {
		return err
	}
	t.handOver(done)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.changed:
	case <-t.Talk.Closed():
	}
	return nil
}

// awaitTeam sleeps until a member, the board or the lead's mail has changed.
func (t *leadTurn) awaitTeam(ctx context.Context) error {
	t.handOver(false)
	if err := t.presence.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
		return err
	}
	tick := time.NewTimer(recheckAfter)
	defer tick.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.changed:
	case <-tick.C:
	}
	return nil
}

// handOver hands the prompt to the user.
func (t *leadTurn) handOver(done bool) {
	if t.inTalk() {
		t.Talk.Rest(done)
	}
}

// LeadEnd returns how a run ended whose lead has shut down, from the lead's transcript and
// the board: what the lead's own process would have returned, had it not been killed before
// it could.
func (s *Services) LeadEnd(ctx context.Context) (End, error) {
	var f TurnFacts
	for e, err := range transcript.Read(ctx, s.Store.Log(), muster.Lead, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt): // the conversation goes on without the entry
		case err != nil:
			return End{Code: 1}, err
		case e.Kind == transcript.KindReply && e.Message != nil:
			f.Message = textOf(*e.Message)
			f.CutOff = cutOffReason(muster.Lead, e.Stop, f.Message)
		}
	}
	var err error
	if f.Progress, err = s.Progress(ctx); err != nil {
		return End{Code: 1}, err
	}
	if end, over := runEnd(f); over {
		return end, nil
	}
	return End{Text: f.Message}, nil
}

// openText says how many tasks are open.
func openText(n int) string {
	if n == 1 {
		return "1 task is open"
	}
	return fmt.Sprintf("%d tasks are open", n)
}
