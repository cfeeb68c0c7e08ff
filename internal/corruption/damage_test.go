package corruption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
	"muster/store/file"
	"muster/store/mem"
)

// look is what the events and the lead's inbox say; a mail that lies there twice is read once.
func look(t *testing.T, s muster.Store) (events []string, mails map[muster.MessageID]string) {
	t.Helper()
	for e, err := range journal.New(s.Log()).Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.StateCorrupt {
			events = append(events, e.Text("key")+" "+e.Text("rev"))
		}
	}
	all, _, err := s.Inbox().Peek(t.Context(), muster.Lead, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	mails = map[muster.MessageID]string{}
	for _, m := range all {
		if m.Type != muster.MailError || m.From != muster.System {
			t.Errorf("%+v", m)
		}
		mails[m.ID] = m.Content
	}
	return events, mails
}

// Eight processes find the same damage while others write events: it is one event and one mail.
func TestSaidOnceByManyProcesses(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() muster.Store{
		"mem": func(*testing.T) func() muster.Store {
			s := mem.New()
			return func() muster.Store { return s.Handle() }
		},
		"file": func(t *testing.T) func() muster.Store {
			root := t.TempDir()
			return func() muster.Store {
				s, err := file.Open(root)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			handle := open(t)
			bad := corruption.Record{Table: "members", Key: "alice", Rev: "r1", Text: "alice.json is not JSON"}
			var g sync.WaitGroup
			for i := range 8 {
				s := handle()
				j := journal.New(s.Log())
				g.Go(func() {
					for k := range 5 {
						if err := j.Emit(context.Background(), muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": fmt.Sprint(i, k)}}); err != nil {
							t.Error(err)
						}
						if err := corruption.New(s.Log(), s.Inbox(), j).Tell(context.Background(), bad); err != nil {
							t.Error(err)
						}
					}
				})
			}
			g.Wait()
			s := handle()
			events, mails := look(t, s)
			if len(events) != 1 || len(mails) != 1 {
				t.Fatalf("%q %q", events, mails)
			}
			// Damaged again, otherwise: that is another.
			bad.Rev = "r2"
			if err := corruption.New(s.Log(), s.Inbox(), journal.New(s.Log())).Tell(t.Context(), bad, bad); err != nil {
				t.Fatal(err)
			}
			if events, mails = look(t, s); len(events) != 2 || len(mails) != 2 {
				t.Fatalf("%q %q", events, mails)
			}
		})
	}
}

// full is an inbox on a full disk.
type full struct{ muster.Inbox }

func (full) Put(context.Context, muster.Name, muster.Message) error {
	return muster.Errorf(muster.Unavailable, "the disk is full")
}

func TestWhatCouldNotBeSaidIsSaidLater(t *testing.T) {
	s := mem.New()
	bad := corruption.Record{Table: "team", Key: "run", Rev: "r", Text: "run.json is not JSON"}
	err := corruption.New(s.Log(), full{s.Inbox()}, journal.New(s.Log())).Tell(t.Context(), bad)
	if !errors.Is(err, muster.ErrUnavailable) {
		t.Fatal(err)
	}
	if events, mails := look(t, s); len(events)+len(mails) != 0 {
		t.Fatalf("%q %q", events, mails)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // its caller has gone: it is said all the same
	if err := corruption.New(s.Log(), s.Inbox(), journal.New(s.Log())).Tell(ctx, bad); err != nil {
		t.Fatal(err)
	}
	if events, mails := look(t, s); len(events) != 1 || len(mails) != 1 {
		t.Fatalf("%q %q", events, mails)
	}
}

// A document that another program has half written is no damage.
func TestHalfWrittenIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		table := s.Table("members")
		rev, _ := table.Put(t.Context(), "alice", []byte(`[]`), muster.None)
		w := corruption.Watch{Name: "members", Table: table}
		read := func(d muster.Doc) error {
			if strings.HasPrefix(string(d.Data), "[") {
				return muster.Errorf(muster.Corrupt, "no member")
			}
			return nil
		}
		w.Saw("alice", false)
		go func() {
			time.Sleep(30 * time.Millisecond)
			table.Put(context.Background(), "alice", []byte(`{}`), rev)
		}()
		teller := corruption.New(s.Log(), s.Inbox(), journal.New(s.Log()))
		say := func() int {
			if err := errors.Join(w.Again(t.Context(), read), w.Say(t.Context(), teller)); err != nil {
				t.Fatal(err)
			}
			events, _ := look(t, s)
			return len(events)
		}
		if n := say(); n != 0 {
			t.Fatalf("said %d times", n)
		}
		d, _ := table.Get(t.Context(), "alice")
		table.Put(t.Context(), "alice", []byte(`[1]`), d.Rev)
		w.Saw("alice", false)
		if n := say(); n != 1 {
			t.Fatalf("said %d times", n)
		}
		if n := say(); n != 1 {
			t.Fatalf("said %d times", n)
		}
	})
}

// What has been read again, or looked at once more, is not waited for and read another time.
func TestDoubtEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		table := s.Table("members")
		for _, key := range []string{"alice", "bob"} {
			if _, err := table.Put(t.Context(), key, []byte(`{}`), muster.None); err != nil {
				t.Fatal(err)
			}
		}
		w := corruption.Watch{Name: "members", Table: table}
		var read []string
		again := func() time.Duration {
			read = nil
			began := time.Now()
			err := w.Again(t.Context(), func(d muster.Doc) error {
				read = append(read, d.Key)
				return muster.Errorf(muster.Corrupt, "no member")
			})
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		w.Saw("alice", false)
		w.Saw("bob", false)
		w.Saw("bob", true)
		if took := again(); took != corruption.HalfWritten || len(read) != 1 || read[0] != "alice" {
			t.Errorf("%v were read again after %v, want alice after %v", read, took, corruption.HalfWritten)
		}
		if took := again(); took != 0 || len(read) != 0 {
			t.Errorf("%v were read once more after %v", read, took)
		}
		// What can be read now is not spoken of.
		w.Saw("alice", true)
		teller := corruption.New(s.Log(), s.Inbox(), journal.New(s.Log()))
		if err := w.Say(t.Context(), teller); err != nil {
			t.Fatal(err)
		}
		if events, _ := look(t, s); len(events) != 0 {
			t.Errorf("said of what can be read: %q", events)
		}
	})
}
