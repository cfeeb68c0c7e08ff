package teammate

import (
	"context"
	"slices"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/journal"
	"muster/store/mem"
)

// watched is a store that tells each look into an inbox before it happens.
type watched struct {
	muster.Store
	look *func(muster.Name)
}

type watchedInbox struct {
	muster.Inbox
	look *func(muster.Name)
}

func (w watched) Inbox() muster.Inbox { return watchedInbox{w.Store.Inbox(), w.look} }

func (w watchedInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) ([]muster.Message, muster.Pos, error) {
	if *w.look != nil {
		(*w.look)(box)
	}
	return w.Inbox.Peek(ctx, box, after, most)
}

func TestProgressLooksIntoTheInboxes(t *testing.T) {
	ctx := t.Context()
	var look func(muster.Name)
	s := watched{mem.New(), &look}
	j := journal.New(s.Log())
	r := Services{Store: s, Journal: j, Roster: roster.New(s, j, "demo"), Board: board.New(s, j),
		Run: func(context.Context) (muster.Run, error) { return muster.Run{}, nil }}
	r.Post = mailbox.New(s, j, r.Roster.Known)
	r.Requests = requests.New(s, r.Post, j)
	be := func(name muster.Name, is muster.MemberStatus) {
		t.Helper()
		if _, err := r.Roster.Update(ctx, name, func(m *muster.Member) { m.Status = is }); err != nil {
			t.Fatal(err)
		}
	}
	send := func(typ muster.MessageType, to muster.Name) {
		t.Helper()
		if _, err := r.Post.Send(ctx, muster.Message{Type: typ, From: muster.User, To: to, Content: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	var looked []muster.Name
	expect := func(what string, talking ...muster.Name) {
		t.Helper()
		looked = nil
		o, err := r.Progress(ctx)
		if err != nil || !slices.Equal(o.Working, talking) || o.Done() != (len(talking) == 0) {
			t.Errorf("%s: %v are talking, done is %v, want %v: %v", what, o.Working, o.Done(), talking, err)
		}
	}
	for _, name := range []muster.Name{"alice", "bob"} {
		if _, err := r.Roster.Add(ctx, muster.Member{Name: name, Role: "coder", Status: muster.Idle}); err != nil {
			t.Fatal(err)
		}
	}

	look = func(box muster.Name) { looked = append(looked, box) }
	expect("all are idle")
	if len(looked) != 2 {
		t.Errorf("looked into the inboxes of %v", looked)
	}
	send(muster.MailIdle, "bob")
	expect("news wakes nobody")
	send(muster.MailMessage, "bob")
	expect("mail waits for bob", "bob")
	be("alice", muster.Working)
	if expect("alice works", "alice"); len(looked) != 0 {
		t.Errorf("somebody works, and it looked into the inboxes of %v", looked)
	}
	be("alice", muster.Idle)
	look = func(box muster.Name) {
		if box == "bob" { // at this very moment
			look = nil
			be("bob", muster.Working)
			_, end, _, err := r.Post.Peek(ctx, "bob", 0, 0)
			if err == nil {
				err = r.Post.Drop(ctx, "bob", end)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	expect("bob takes its mail while it is looked for", "bob")
	be("bob", muster.Shutdown)
	expect("bob is gone")
}
