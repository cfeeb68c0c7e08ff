package mailbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
	"muster/store/storetest"
)

// A failure of the store is the caller's error, whatever operation it comes in. That of the journal is not: the mail is
// what counts.
func TestNoFailureIsHidden(t *testing.T) {
	stop := func() {}
	isMail := func(op string) bool {
		if strings.HasPrefix(op, "append") {
			stop()
		}
		return strings.HasSuffix(op, "mail")
	}
	storetest.FailEach(t, isMail, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		s := mem.New()
		p := team(wrap(s))
		ctx := t.Context()
		once, cancel := context.WithCancel(ctx)
		stop = cancel // the sender is stopped when its mail is stored, which is told all the same
		if _, err := p.Send(once, mail("alice", "one")); err != nil || len(events(t, s)) != 1 {
			return cmp.Or(err, errors.New("the mail is not told"))
		}
		sent, err := p.Broadcast(ctx, "lead", "two", []muster.Name{"alice", "bob"})
		if err != nil {
			if len(sent) != 1 {
				t.Errorf("%v were sent with the error %v", sent, err)
			}
			return err
		}
		msgs, end, waiting, err := p.Peek(ctx, "alice", 0, 1)
		if err != nil {
			if len(msgs) != 0 || end != 0 || waiting != 0 {
				t.Errorf("peeked %v up to %d before %d with the error %v", msgs, end, waiting, err)
			}
			return err
		}
		if _, err := p.Waking(ctx, "alice", 0); err != nil {
			return err
		}
		if _, err := p.Landings(ctx, "alice", 0); err != nil {
			return err
		}
		return p.Drop(ctx, "alice", end)
	})
}

// Mail that lies in the inbox is sent, although its event cannot be written.
func TestMailIsSentWithoutItsEvent(t *testing.T) {
	isEvent := func(op string) bool { return op == "append events" }
	storetest.FailEach(t, isEvent, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		s := mem.New()
		require.NoError(t, second(team(wrap(s)).Send(t.Context(), mail("alice", "hi"))))
		if len(events(t, s)) == 0 {
			return muster.ErrUnavailable
		}
		return nil
	})
}
