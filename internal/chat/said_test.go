package chat

import (
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// What was typed here is known by its event, once; what was typed elsewhere is not taken for it.
func TestSaid(t *testing.T) {
	t.Parallel()
	var s said
	mail := func(from muster.Name, to, text string) muster.Event {
		return muster.Event{Kind: journal.MailSent, Member: from, Fields: map[string]any{"to": to, "text": text}}
	}
	long := strings.Repeat("word ", 100)
	s.add("hello\n")
	s.add(long)
	s.add("")
	for _, c := range []struct {
		what string
		e    muster.Event
		want bool
	}{
		{"of another terminal", mail(muster.User, "lead", "how is it?"), false},
		{"of a member", mail("alice", "lead", "hello"), false},
		{"to a member", mail(muster.User, "alice", "hello"), false},
		{"long, typed here", mail(muster.User, "lead", long[:200]+" ..."), true},
		{"typed here", mail(muster.User, "lead", "hello"), true},
		{"the same of another terminal", mail(muster.User, "lead", "hello"), false},
	} {
		if is := s.is(c.e); is != c.want {
			t.Errorf("mail %s: %v", c.what, is)
		}
	}
}
