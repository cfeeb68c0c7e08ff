package storetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"muster"
)

// mail returns a mail with an id, whose text names it.
func mail(id string) muster.Message {
	return muster.Message{ID: muster.MessageID(id), Type: muster.MailMessage, From: "bob", To: "alice",
		Content: "about " + id, At: 12.5}
}

// send puts a mail with each of the ids into a box.
func send(t *testing.T, in muster.Inbox, box muster.Name, ids ...string) {
	t.Helper()
	for _, id := range ids {
		ok(t, in.Put(t.Context(), box, mail(id)))
	}
}

// peek returns the ids of what is pending after a place.
func peek(t *testing.T, in muster.Inbox, box muster.Name, after muster.Pos, most int) (string, muster.Pos) {
	t.Helper()
	ms, end, err := in.Peek(t.Context(), box, after, most)
	ok(t, err)
	var ids []string
	for _, m := range ms {
		ids = append(ids, string(m.ID))
	}
	if len(ms) == 0 && end != after {
		t.Fatalf("after nothing the place went from %d to %d", after, end)
	}
	if len(ms) > 0 && end <= after {
		t.Fatalf("after %d mails the place went from %d to %d", len(ms), after, end)
	}
	return strings.Join(ids, " "), end
}

var inboxTests = []test{
	{"a mail comes back as it was", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		yes := true
		m := muster.Message{
			ID: "m1", Type: muster.MailPlanAnswer, From: "lead", To: "another",
			Content: "line\nline <inbox> \u2028 é \x00", At: 1700000000.25,
			RequestID: "7f2c91aa", Approve: &yes, Feedback: "go", Plan: "1.", TaskID: 3,
		}
		ok(t, a.Put(t.Context(), "alice", m))
		got, _, err := b.Peek(t.Context(), "alice", 0, 10)
		ok(t, err)
		equal(t, "mails", len(got), 1)
		equal(t, "approve", *got[0].Approve, true)
		got[0].Approve, m.Approve = nil, nil
		equal(t, "the mail", got[0], m)
	}},
	{"an empty box has nothing", func(t *testing.T, open func() muster.Store) {
		a := open().Inbox()
		got, _ := peek(t, a, "alice", 0, 10)
		equal(t, "mails", got, "")
		ok(t, a.Drop(t.Context(), "alice", 0))
	}},
	{"peek returns the oldest, as many as asked at most, then the next", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		send(t, a, "alice", "m1", "m2")
		send(t, b, "alice", "m3", "m4", "m5")
		got, end := peek(t, b, "alice", 0, 2)
		equal(t, "first", got, "m1 m2")
		again, _ := peek(t, b, "alice", 0, 2)
		equal(t, "peek takes nothing away", again, got)
		got, end = peek(t, b, "alice", end, 2)
		equal(t, "then", got, "m3 m4")
		got, end = peek(t, b, "alice", end, math.MaxInt)
		equal(t, "last", got, "m5")
		got, _ = peek(t, b, "alice", end, 2)
		equal(t, "no more", got, "")
		got, _ = peek(t, b, "alice", 0, 0)
		equal(t, "none asked for", got, "")
	}},
	{"drop removes what lies before the place, for everybody", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		send(t, a, "alice", "m1", "m2", "m3")
		_, first := peek(t, b, "alice", 0, 1)
		_, end := peek(t, b, "alice", 0, 2)
		ok(t, b.Drop(t.Context(), "alice", end))
		for _, in := range []muster.Inbox{a, b, open().Inbox()} {
			got, _ := peek(t, in, "alice", 0, 10)
			equal(t, "left", got, "m3")
		}
		got, _ := peek(t, b, "alice", end, 10)
		equal(t, "after the place", got, "m3")
		got, _ = peek(t, b, "alice", first, 10)
		equal(t, "after a place that was dropped", got, "m3")
		ok(t, b.Drop(t.Context(), "alice", end))
		got, _ = peek(t, b, "alice", 0, 10)
		equal(t, "dropped again", got, "m3")
		_, end = peek(t, b, "alice", 0, 10)
		ok(t, a.Drop(t.Context(), "alice", end))
		got, _ = peek(t, b, "alice", 0, 10)
		equal(t, "all dropped", got, "")
	}},
	{"mail that comes between peek and drop stays", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		next := 0
		for range 5 {
			send(t, a, "alice", fmt.Sprint("m", next))
			got, end := peek(t, b, "alice", 0, 10)
			equal(t, "peeked", got, fmt.Sprint("m", next))
			send(t, a, "alice", fmt.Sprint("m", next+1), fmt.Sprint("m", next+2))
			ok(t, b.Drop(t.Context(), "alice", end))
			got, end2 := peek(t, b, "alice", 0, 10)
			equal(t, "left", got, fmt.Sprintf("m%d m%d", next+1, next+2))
			if end2 <= end {
				t.Fatalf("the place went from %d to %d", end, end2)
			}
			ok(t, b.Drop(t.Context(), "alice", end2))
			got, _ = peek(t, b, "alice", 0, 10)
			equal(t, "all dropped", got, "")
			next += 3
		}
	}},
	{"the order holds over a drop in the middle", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		send(t, a, "alice", "m1", "m2", "m3")
		_, end := peek(t, a, "alice", 0, 1)
		ok(t, a.Drop(t.Context(), "alice", end))
		send(t, a, "alice", "m4", "m5")
		got, end := peek(t, a, "alice", 0, 3)
		equal(t, "oldest first", got, "m2 m3 m4")
		got, _ = peek(t, a, "alice", end, 3)
		equal(t, "then", got, "m5")
		ok(t, b.Drop(t.Context(), "alice", end)) // not the handle that has peeked
		got, _ = peek(t, a, "alice", 0, 10)
		equal(t, "left", got, "m5")
	}},
	{"the same id may be stored twice", func(t *testing.T, open func() muster.Store) {
		a := open().Inbox()
		send(t, a, "alice", "m1", "m1")
		got, _ := peek(t, a, "alice", 0, 10)
		equal(t, "mails", got, "m1 m1")
	}},
	{"a mail without an id gets one that stays and comes only once", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		seen := map[string]bool{}
		for range 3 {
			send(t, a, "alice", "", "")
			got, end := peek(t, b, "alice", 0, 1)
			both, _ := peek(t, a, "alice", 0, 10)
			ids := strings.Fields(both)
			equal(t, "mails", len(ids), 2)
			equal(t, "the first id", ids[0], got)
			ok(t, b.Drop(t.Context(), "alice", end))
			got, end = peek(t, b, "alice", 0, 10)
			equal(t, "the second id stays", got, ids[1])
			ok(t, b.Drop(t.Context(), "alice", end))
			for _, id := range ids {
				if seen[id] {
					t.Fatalf("the id %s came twice", id)
				}
				seen[id] = true
			}
		}
	}},
	{"boxes are apart", func(t *testing.T, open func() muster.Store) {
		a := open().Inbox()
		send(t, a, "alice", "m1")
		send(t, a, "bob", "m2")
		send(t, a, muster.Lead, "m3")
		_, end := peek(t, a, "alice", 0, 10)
		ok(t, a.Drop(t.Context(), "alice", end))
		got, _ := peek(t, a, "bob", 0, 10)
		equal(t, "bob's", got, "m2")
		got, _ = peek(t, a, muster.Lead, 0, 10)
		equal(t, "lead's", got, "m3")
	}},
	{"what is no mail, and a box that is a path, is invalid", func(t *testing.T, open func() muster.Store) {
		a := open().Inbox()
		wants(t, a.Put(t.Context(), "alice", muster.Message{}), muster.ErrInvalid)
		for _, box := range []muster.Name{"", "..", "../x", "a/b", ".x", "-x", "alice.rejected"} {
			wants(t, a.Put(t.Context(), box, mail("m1")), muster.ErrInvalid)
			_, _, err := a.Peek(t.Context(), box, 0, 1)
			wants(t, err, muster.ErrInvalid)
			wants(t, a.Drop(t.Context(), box, 1), muster.ErrInvalid)
		}
		ok(t, a.Drop(t.Context(), "alice", 0))
		got, _ := peek(t, a, "alice", 0, 10)
		equal(t, "mails", got, "")
	}},
	{"many senders and one reader lose nothing and double nothing", func(t *testing.T, open func() muster.Store) {
		const senders, each = 4, 12
		reader := open().Inbox()
		watch := reader.Watch(t.Context(), "alice")
		var all sync.WaitGroup
		for s := range senders {
			in := open().Inbox()
			all.Go(func() {
				for i := range each {
					if err := in.Put(t.Context(), "alice", mail(fmt.Sprintf("%d-%d", s, i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		got := map[string]bool{}
		last := make([]int, senders)
		for len(got) < senders*each {
			ids, end := peek(t, reader, "alice", 0, 3)
			if ids == "" {
				hinted(t, watch, fmt.Sprintf("%d mails", len(got)))
				continue
			}
			for _, id := range strings.Fields(ids) {
				if got[id] {
					t.Fatalf("%s came twice", id)
				}
				got[id] = true
				var s, i int
				if _, err := fmt.Sscanf(id, "%d-%d", &s, &i); err != nil {
					t.Fatal(err)
				}
				equal(t, "one sender's order", i, last[s])
				last[s]++
			}
			ok(t, reader.Drop(t.Context(), "alice", end))
		}
		all.Wait()
		ids, _ := peek(t, reader, "alice", 0, 10)
		equal(t, "left", ids, "")
	}},
	{"a watch is told of its box, and ends with its context", func(t *testing.T, open func() muster.Store) {
		a, b := open().Inbox(), open().Inbox()
		ctx, cancel := context.WithCancel(t.Context())
		own, other := a.Watch(ctx, "alice"), b.Watch(t.Context(), "alice")
		send(t, a, "alice", "m1")
		hinted(t, own, "an own mail")
		hinted(t, other, "another's mail")
		_, end := peek(t, b, "alice", 0, 10)
		ok(t, b.Drop(t.Context(), "alice", end))
		send(t, a, "alice", "m2")
		hinted(t, other, "a mail after a drop")
		cancel()
		ended(t, own)
	}},
}
