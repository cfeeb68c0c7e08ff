package corruption_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"muster"
	"muster/internal/corruption"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/file"
	"muster/store/mem"
)

// look is what the events and the lead's inbox say; a mail that lies there twice is read once.
func look(t *testing.T, s muster.Store) (events []string, mails map[muster.MessageID]string) {
	t.Helper()
	for e, err := range journal.New(s.Log()).Read(t.Context(), 0) {
		require.NoError(t, err)
		if e.Kind == journal.StateCorrupt {
			events = append(events, e.Text("key")+" "+e.Text("rev"))
		}
	}
	all, _, err := s.Inbox().Peek(t.Context(), muster.Lead, 0, 1000)
	require.NoError(t, err)
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
				s := require.Value(file.Open(root))(t)
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
			require.NoError(t, corruption.New(s.Log(), s.Inbox(), journal.New(s.Log())).Tell(t.Context(), bad, bad))
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
	require.NoError(t, corruption.New(s.Log(), s.Inbox(), journal.New(s.Log())).Tell(ctx, bad))
	if events, mails := look(t, s); len(events) != 1 || len(mails) != 1 {
		t.Fatalf("%q %q", events, mails)
	}
}
