package mailbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/journal"
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
		return p.Drop(ctx, "alice", end)
	})
	storetest.FailEach(t, isMail, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		p := team(wrap(mem.New()))
		if _, err := p.Waking(t.Context(), "alice", 0); err != nil {
			return err
		}
		if _, err := p.Landings(t.Context(), "alice", 0); err != nil {
			return err
		}
		_, _, _, err := p.Peek(t.Context(), "alice", 7, 0)
		return err
	})
}

// Nothing is sent while it cannot be told whether the recipient exists.
func TestWhoCannotBeLookedUpGetsNoMail(t *testing.T) {
	broken := errors.New("the roster cannot be read")
	s := mem.New()
	p := New(s, journal.New(s.Log()), func(context.Context, muster.Name) (bool, []muster.Name, error) {
		return false, nil, broken
	})
	if _, err := p.Send(t.Context(), mail("alice", "hi")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 9); len(got) != 0 || err != nil {
		t.Errorf("alice has %v, %v", got, err)
	}
}

// The error of a broadcast names all who were not reached. That of one comes with its hint.
func TestABroadcastNamesWhomItDidNotReach(t *testing.T) {
	p := team(mem.New())
	_, err := p.Broadcast(t.Context(), "lead", "hi", []muster.Name{"gone", "alice", "away"})
	if err == nil || !strings.Contains(err.Error(), "gone") || !strings.Contains(err.Error(), "away") {
		t.Errorf("two: %v", err)
	}
	sent, err := p.Broadcast(t.Context(), "lead", strings.Repeat("x", MaxMail+1), []muster.Name{"alice"})
	if one := new(muster.Error); len(sent) != 0 || !errors.As(err, &one) || one.Hint == "" {
		t.Errorf("one: %#v, and %v were sent", err, sent)
	}
}
