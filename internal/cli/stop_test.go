package cli

import (
	"context"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/journal"
	"muster/store/file"
)

// A lead that stops keeps its record as it was, for resume: it has stopped when its process has ended.
func TestStopOfALeadThatKeepsItsRecord(t *testing.T) {
	w := newWorld(t, "team", "stop", "--force")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s, err := file.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(s.Log())
	r := roster.New(s, j, "team")
	q := requests.New(s, mailbox.New(s, j, r.Known), j)
	h, err := r.Join(ctx, "the test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Host: h.ID(), Status: muster.Working}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	changed := q.Watch(ctx)
	wg.Go(func() {
		for {
			pending, _ := q.Pending(ctx)
			for _, x := range pending {
				const reason = "the team stops; muster resume goes on"
				if _, _, err := q.Decide(ctx, x.ID, x.To, true, reason); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if err := h.Release(); err != nil {
					t.Error(err)
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = h.Release() // the test is over, and nobody takes the host over
		s.Close()
	})
	w.run(t.Context(), 0)
	if out := strings.TrimSpace(w.out.String()); out != "lead  stopped" {
		t.Errorf("%q", out)
	}
	if lead, err := r.Get(ctx, muster.Lead); err != nil || lead.Status != muster.Working {
		t.Errorf("its record says %s, %v", lead.Status, err)
	}
}

// A member that refuses to stop makes the command exit 1, with --json as without it.
func TestStopThatIsRefusedExits1(t *testing.T) {
	for want, args := range map[string][]string{
		"alice goes on not yet": {"team", "stop", "alice"},
		`[ { "name": "alice", "stopped": false, "reason": "not yet" } ]`: {"team", "stop", "alice", "--json"},
	} {
		t.Run(args[len(args)-1], func(t *testing.T) {
			w := newWorld(t, args...)
			answerShutdowns(t, w, "alice", false, "not yet")
			w.run(t.Context(), 1)
			if out := strings.Join(strings.Fields(w.out.String()), " "); out != want {
				t.Errorf("it prints %q, want %q", out, want)
			}
		})
	}
}

// answerShutdowns adds a member hosted by the test, which gives the same answer to each request to shut down.
func answerShutdowns(t *testing.T, w *world, name muster.Name, approve bool, reason string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s, err := file.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(s.Log())
	r := roster.New(s, j, "team")
	q := requests.New(s, mailbox.New(s, j, r.Known), j)
	h, err := r.Join(ctx, "the test")
	if err != nil {
		t.Fatal(err)
	}
	m := muster.Member{Name: name, Role: "coder", Host: h.ID(), Status: muster.Working}
	if _, err := r.Add(ctx, m); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	changed := q.Watch(ctx)
	wg.Go(func() {
		for {
			pending, _ := q.Pending(ctx)
			for _, x := range pending {
				if _, _, err := q.Decide(ctx, x.ID, x.To, approve, reason); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = h.Release() // the test is over, and nobody takes the host over
		s.Close()
	})
}
