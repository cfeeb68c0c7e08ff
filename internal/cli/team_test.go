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
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/file"
)

// lives hosts members in the world's repository: each answers a shutdown request as it is told, and what was approved
// or forced ends.
func (w *world) lives(answers map[muster.Name]bool) {
	w.Helper()
	w.livesUntil(answers, func(r *roster.Roster, _ *roster.Host, name muster.Name) error {
		_, err := r.Update(w.Context(), name, func(m *muster.Member) { m.Status, m.Host = muster.Shutdown, "" })
		return err
	})
}

func (w *world) livesUntil(answers map[muster.Name]bool, end func(*roster.Roster, *roster.Host, muster.Name) error) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	s := require.Value(file.Open(w.dir))(w)
	j := journal.New(s.Log())
	r := roster.New(s, j, "team")
	q := requests.New(s, mailbox.New(s, j, r.Known), j)
	h := require.Value(r.Join(ctx, "the test"))(w)
	for name := range answers {
		m := muster.Member{Name: name, Role: "coder", Host: h.ID(), Status: muster.Working}
		if name == muster.Lead {
			m.Role = "lead"
		}
		require.Value(r.Add(ctx, m))(w)
	}
	var wg sync.WaitGroup
	changed := q.Watch(ctx)
	wg.Go(func() {
		for {
			pending, _ := q.Pending(ctx)
			for _, x := range pending {
				yes := x.Force || answers[x.To]
				if _, _, err := q.Decide(ctx, x.ID, x.To, yes, "my task is half done"); err != nil || !yes {
					continue
				}
				if err := end(r, h, x.To); err != nil && ctx.Err() == nil {
					w.Error(err)
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = h.Release() // the test is over, and nobody takes the host over
		s.Close()
	})
}

// A lead that stops keeps its record as it was, for resume: it has stopped when its process has ended.
func TestStopOfALeadThatKeepsItsRecord(t *testing.T) {
	w := newWorld(t, "team", "stop", "--force")
	rosters := make(chan *roster.Roster, 1)
	w.livesUntil(map[muster.Name]bool{muster.Lead: true}, func(of *roster.Roster, h *roster.Host, _ muster.Name) error {
		rosters <- of
		return h.Release()
	})
	w.run(t.Context(), 0)
	if out := strings.TrimSpace(w.out.String()); out != "lead  stopped" {
		t.Errorf("%q", out)
	}
	if lead, err := (<-rosters).Get(t.Context(), muster.Lead); err != nil || lead.Status != muster.Working {
		t.Errorf("its record says %s, %v", lead.Status, err)
	}
}

func TestStopAsksAndSaysWhoGoesOn(t *testing.T) {
	w := newWorld(t, "team", "stop")
	w.lives(map[muster.Name]bool{"alice": true, "bob": false, "lead": true})
	w.run(t.Context(), 1)
	out := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	want := []string{"bob    goes on  my task is half done", "alice  stopped", "lead   stopped"}
	if strings.Join(out, "\n") != strings.Join(want, "\n") && strings.Join(out, "\n") != strings.Join([]string{want[1], want[0], want[2]}, "\n") {
		t.Errorf("%q", out)
	}

	w.muster(0, "team", "list")
	if !strings.Contains(w.out.String(), "bob    coder  working") || !strings.Contains(w.out.String(), "alice  coder  stopped") {
		t.Error(w.out.String())
	}

	// A refusal is an error with --json, too.
	w.muster(1, "team", "stop", "bob", "--json")
	if !strings.Contains(w.out.String(), `"stopped": false`) || !strings.Contains(w.out.String(), `"reason": "my task is half done"`) {
		t.Error(w.out.String())
	}

	w.muster(0, "team", "stop", "bob", "--force", "--json")
	if !strings.Contains(w.out.String(), `"stopped": true`) || !strings.Contains(w.out.String(), `"name": "bob"`) {
		t.Error(w.out.String())
	}
}
