package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/mem"
	"muster/store/storetest"
)

// team is a post where alice, bob, lead and user are known.
func team(s muster.Store) *Mail {
	return New(s, journal.New(s.Log()), func(_ context.Context, n muster.Name) (bool, []muster.Name, error) {
		if n == "alcie" {
			return false, []muster.Name{"alice", "lice"}, nil
		}
		if n == "lost" {
			return false, nil, muster.Errorf(muster.Unavailable, "the roster cannot be read")
		}
		return slices.Contains([]muster.Name{"alice", "bob", "lead", "user"}, n), nil, nil
	})
}

func second[T any](_ T, err error) error { return err }

func mail(to muster.Name, content string) muster.Message {
	return muster.Message{From: "bob", To: to, Content: content}
}

func events(t *testing.T, s muster.Store) (out []muster.Event) {
	t.Helper()
	for e, err := range journal.New(s.Log()).Read(t.Context(), 0) {
		require.NoError(t, err)
		out = append(out, e.Event)
	}
	return out
}

func TestSend(t *testing.T) {
	s := mem.New()
	p := team(s)
	m, err := p.Send(t.Context(), muster.Message{From: "bob", To: "alice", Content: "hello\nyou", TaskID: 3})
	require.NoError(t, err)
	if len(m.ID) != 16 || m.At == 0 || m.Type != muster.MailMessage {
		t.Fatalf("sent %+v", m)
	}
	got, end, waiting, err := team(s.Handle()).Peek(t.Context(), "alice", 0, 0)
	require.NoError(t, err)
	if len(got) != 1 || got[0] != m || waiting != 0 {
		t.Fatalf("peeked %+v, %d wait", got, waiting)
	}
	require.NoError(t, p.Drop(t.Context(), "alice", end))
	if got, _, _, _ := p.Peek(t.Context(), "alice", 0, 0); len(got) != 0 {
		t.Fatalf("dropped mail comes again: %v", got)
	}
	es := events(t, s)
	if len(es) != 1 || es[0].Kind != journal.MailSent || es[0].Member != "bob" || es[0].Task != 3 ||
		es[0].Text("to") != "alice" || es[0].Text("id") != string(m.ID) || es[0].Text("text") != "hello\nyou" ||
		es[0].Text("type") != string(muster.MailMessage) {
		t.Fatalf("events %+v", es)
	}
}

func TestSendRefuses(t *testing.T) {
	for _, c := range []struct {
		m    muster.Message
		want *muster.Error
		says string
	}{
		{mail("alcie", "hi"), muster.ErrNotFound,
			`no mail sent: there is no member "alcie" (did you mean alice or lice?)`},
		{mail("nobody", "hi"), muster.ErrNotFound, `no mail sent: there is no member "nobody"`},
		{mail("", "hi"), muster.ErrInvalid, "no mail sent: it has no recipient"},
		{muster.Message{To: "alice", Content: "hi"}, muster.ErrInvalid, "no mail sent: it has no sender"},
		{mail("lost", "hi"), muster.ErrUnavailable, "the roster cannot be read"},
		{mail("alice", " \n"), muster.ErrInvalid, "no mail sent: it is empty"},
		{muster.Message{Type: muster.MailMessage, From: "bob", To: "alice"}, muster.ErrInvalid,
			"no mail sent: it is empty"},
		{muster.Message{Type: muster.MailBroadcast, From: "bob", To: "alice"}, muster.ErrInvalid,
			"no mail sent: it is empty"},
		{mail("alice", "a\xff"), muster.ErrInvalid, "no mail sent: its text is not UTF-8"},
		{mail("alice", "x"+strings.Repeat("ä", MaxMail/2)), muster.ErrInvalid,
			"no mail sent: its text has 65537 bytes, and a mail may have 65536"},
		{muster.Message{Type: muster.MailPlanAnswer, From: "bob", To: "alice", Feedback: "a\xff"}, muster.ErrInvalid,
			"no mail sent: its text is not UTF-8"},
		{muster.Message{Type: muster.MailPlan, From: "bob", To: "alice", Plan: "a\xff"}, muster.ErrInvalid,
			"no mail sent: its text is not UTF-8"},
		{muster.Message{Type: muster.MailPlanAnswer, From: "bob", To: "alice", Content: "x", Plan: "x",
			Feedback: strings.Repeat("x", MaxMail-1)}, muster.ErrInvalid,
			"no mail sent: its text has 65537 bytes, and a mail may have 65536"},
	} {
		s := mem.New()
		_, err := team(s).Send(t.Context(), c.m)
		if !errors.Is(err, c.want) || err.Error() != c.says {
			t.Errorf("got %q, want %q", err, c.says)
		}
		if hint := muster.HintOf(err); errors.Is(err, muster.ErrNotFound) && hint != "muster team list" ||
			strings.Contains(c.says, "may have") && !strings.Contains(hint, "file") {
			t.Errorf("%s: the hint is %q", c.says, hint)
		}
		if got, _, _, _ := team(s).Peek(t.Context(), c.m.To, 0, 0); len(got) != 0 || len(events(t, s)) != 0 {
			t.Errorf("%s: something was sent", c.says)
		}
	}
	full := storetest.Failing(mem.New(), func(op string) bool { return op == "put mail" })
	if _, err := team(full).Send(t.Context(), mail("alice", "hi")); !errors.Is(err, muster.ErrUnavailable) || len(events(t, full)) != 0 {
		t.Errorf("%v, and there are the events %v", err, events(t, full))
	}
	require.NoError(t, second(team(mem.New()).Send(t.Context(), mail("alice", strings.Repeat("x", MaxMail)))))
	for _, kind := range []muster.MessageType{muster.MailPlanAnswer, muster.MailShutdown} { // whole without words
		m := muster.Message{Type: kind, From: "bob", To: "alice"}
		require.NoError(t, second(team(mem.New()).Send(t.Context(), m)))
	}
}

func TestSentTwiceIsReadOnce(t *testing.T) {
	p := team(mem.New())
	m := mail("alice", "once")
	m.ID = NewID()
	for range 2 {
		_, err := p.Send(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, second(p.Send(t.Context(), mail("alice", "then"))))
	got, _, waiting, err := p.Peek(t.Context(), "alice", 0, 0)
	require.NoError(t, err)
	if len(got) != 2 || got[0].Content != "once" || got[1].Content != "then" || waiting != 0 {
		t.Fatalf("%+v, %d wait", got, waiting)
	}
}

func TestBroadcast(t *testing.T) {
	s := mem.New()
	p := team(s)
	sent, err := p.Broadcast(t.Context(), "lead", "all hands",
		[]muster.Name{"gone", "alice", "lead", "bob", "away", "alice"})
	if !errors.Is(err, muster.ErrNotFound) || !strings.Contains(err.Error(), "gone") ||
		!strings.Contains(err.Error(), "away") {
		t.Fatalf("the error must name both who were not reached: %v", err)
	}
	if len(sent) != 2 || sent[0].ID == sent[1].ID || sent[0].To != "alice" || sent[1].To != "bob" {
		t.Fatalf("%+v", sent)
	}
	for _, n := range []muster.Name{"alice", "bob"} {
		got, _, _, err := p.Peek(t.Context(), n, 0, 0)
		require.NoError(t, err)
		if len(got) != 1 || got[0].Type != muster.MailBroadcast || got[0].From != "lead" {
			t.Fatalf("%s has %+v", n, got)
		}
	}
	if got, _, _, _ := p.Peek(t.Context(), "lead", 0, 0); len(got) != 0 {
		t.Fatal("the sender got its own broadcast")
	}
	sent, err = p.Broadcast(t.Context(), "lead", strings.Repeat("x", MaxMail+1), []muster.Name{"alice"})
	if len(sent) != 0 || muster.HintOf(err) == "" {
		t.Errorf("what is too large: %v, and %v were sent", err, sent)
	}
}

func TestALargeInboxIsDeliveredInParts(t *testing.T) {
	p := team(mem.New())
	var want []string
	for i := range 1500 {
		content := fmt.Sprintf("mail %d %s", i, strings.Repeat("y", i%300))
		if i == 700 {
			content = strings.Repeat("<", MaxMail) // rendered it is more than a delivery holds
		}
		_, err := p.Send(t.Context(), mail("alice", content))
		require.NoError(t, err)
		want = append(want, content)
	}
	var got []string
	var pos muster.Pos
	for parts := 0; ; parts++ {
		msgs, end, waiting, err := p.Peek(t.Context(), "alice", pos, 0) // which means MaxDelivery
		require.NoError(t, err)
		if len(msgs) == 0 {
			if parts < 6 || end != pos {
				t.Fatalf("only %d parts, or the end is not %d but %d", parts, pos, end)
			}
			break
		}
		if n := len(Render(msgs, waiting)); n > MaxDelivery+len(msgs)*8+100 && len(msgs) > 1 {
			t.Fatalf("a delivery of %d mails has %d bytes", len(msgs), n)
		}
		for _, m := range msgs {
			got = append(got, m.Content)
		}
		if len(got)+waiting != len(want) {
			t.Fatalf("%d are said to wait, %d do", waiting, len(want)-len(got))
		}
		if parts%2 == 0 { // dropped or not, the place is enough
			require.NoError(t, p.Drop(t.Context(), "alice", end))
		}
		pos = end
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d mails of %d, or not in order", len(got), len(want))
	}
}

// A delivery may have exactly as many bytes as it may have, and so may an excerpt.
func TestWhatJustFits(t *testing.T) {
	s := mem.New()
	p := team(s)
	text := strings.Repeat("ä", 100)
	size := 0
	for range 2 {
		m, err := p.Send(t.Context(), mail("alice", text))
		require.NoError(t, err)
		size += len(renderMail(m))
	}
	for most, want := range map[int]int{size: 2, size - 1: 1, 1: 1} {
		got, end, waiting, err := p.Peek(t.Context(), "alice", 0, most)
		if err != nil || len(got) != want || waiting != 2-want || end == 0 {
			t.Errorf("into %d bytes fit %d mails up to %d, %d wait, %v", most, len(got), end, waiting, err)
		}
	}
	require.NoError(t, second(p.Send(t.Context(), muster.Message{Type: muster.MailPlanAnswer, From: "lead", To: "alice",
		Feedback: text + "ä"})))
	if all := events(t, s); all[0].Text("text") != text || all[2].Text("text") != strings.Repeat("ä", 98)+" ..." {
		t.Errorf("the excerpts of 200 and 202 bytes are %q and %q", all[0].Text("text"), all[2].Text("text"))
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"as it is":                      "as it is",
		"bad \xff byte":                 "bad ? byte",
		strings.Repeat("x", 4000):       strings.Repeat("x", 4000),
		strings.Repeat("é", 2001):       strings.Repeat("é", 1998) + " ...",
		"a" + strings.Repeat("é", 2000): "a" + strings.Repeat("é", 1997) + " ...", // not half a character
	} {
		if got := Short(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q... became %d bytes, want %d", text, len(got), len(want))
		}
	}
}
