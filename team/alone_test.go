package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/workspace"
	"muster/journal"
	"muster/team"
)

// before is a store in which something happens just before a lease is asked for.
type before struct {
	muster.Store
	lease   string
	happens func()
}

func (b *before) Leases() muster.Leases { return beforeLeases{b.Store.Leases(), b} }

type beforeLeases struct {
	muster.Leases
	b *before
}

func (l beforeLeases) Acquire(ctx context.Context, name string) (muster.Lease, error) {
	if f := l.b.happens; name == l.b.lease && f != nil {
		l.b.happens = nil
		f()
	}
	return l.Leases.Acquire(ctx, name)
}

const answers = `
speakers:
  lead:
    - say: Forty-two.
`

// record writes the run's record as another process would.
func (h *house) record(change func(*muster.Run)) {
	h.Helper()
	table := h.store.Table(muster.TableTeam)
	doc, err := table.Get(h.Context(), "run")
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		h.Fatal(err)
	}
	run := muster.Run{Team: "demo", Goal: "another goal", Target: "muster/demo", StartedAt: muster.UnixTime(time.Now())}
	if err == nil {
		if err := json.Unmarshal(doc.Data, &run); err != nil {
			h.Fatal(err)
		}
	}
	change(&run)
	data, err := muster.Encode(run)
	if err == nil {
		_, err = table.Put(h.Context(), "run", data, doc.Rev)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// shelving leaves what an archive leaves that was interrupted.
func (h *house) shelving() {
	h.Helper()
	dir := filepath.Join(h.w.root, ".team", "archive")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "moving"), []byte("20200101-000000\n"), 0o600); err != nil {
		h.Fatal(err)
	}
}

// A start that was overtaken between its first look and its lease does not go over what it finds then.
func TestAStartLooksAgainWhenItIsAlone(t *testing.T) {
	t.Parallel()
	openTask := func(h *house) {
		if _, err := h.board.Create(h.Context(), board.Draft{Subject: "open", CreatedBy: muster.Lead}); err != nil {
			h.Fatal(err)
		}
	}
	run := func(t *team.Team, ctx context.Context) error {
		_, err := t.Run(ctx, "the goal", team.Start{})
		return err
	}
	resume := func(t *team.Team, ctx context.Context) error { _, err := t.Resume(ctx); return err }
	join := func(t *team.Team, ctx context.Context) error { _, err := t.Join(ctx, &team.Workers{}); return err }
	stopped := func(h *house) { h.record(func(*muster.Run) {}); openTask(h) }
	for what, c := range map[string]struct {
		first   func(*house)
		lease   string
		happens func(*house)
		start   func(*team.Team, context.Context) error
		want    error
		says    string
	}{
		"a run, and another has stopped": {func(*house) {}, workspace.LeadLease, stopped, run, muster.ErrHeld, "a team stopped here with 1 open task"},
		"a run, and an archive":          {func(*house) {}, workspace.LeadLease, (*house).shelving, run, muster.ErrInvalid, "was interrupted"},
		"resume, and another has ended": {stopped, workspace.LeadLease, func(h *house) {
			h.record(func(r *muster.Run) { r.EndedAt = r.StartedAt })
			if err := h.board.Delete(h.Context(), 1, true); err != nil {
				h.Fatal(err)
			}
			// The other process has told its end: one that was killed before would be told by this resume.
			if err := h.journal.Emit(h.Context(), muster.Event{Kind: journal.RunEnded, Member: muster.Lead}); err != nil {
				h.Fatal(err)
			}
		}, resume, muster.ErrNotFound, "the last run has ended"},
		"resume, and an archive": {stopped, workspace.LeadLease, (*house).shelving, resume, muster.ErrInvalid, "was interrupted"},
		"join, and an archive":   {stopped, "host-1", (*house).shelving, join, muster.ErrInvalid, "was interrupted"},
		"join, and the run has ended": {stopped, "host-1", func(h *house) {
			h.record(func(r *muster.Run) { r.EndedAt = r.StartedAt })
		}, join, muster.ErrNotFound, "no run under way"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(h *house) {
				c.first(h)
				ctx, cancel := context.WithTimeout(h.Context(), time.Hour)
				defer cancel()
				tm := h.open(h.scripted(answers), func(x *team.Config) {
					x.Store = &before{Store: x.Store, lease: c.lease, happens: func() {
						if made := h.w.git("for-each-ref", "refs/heads/muster"); made != "" {
							t.Errorf("it is not alone yet, and has made %s", made)
						}
						c.happens(h)
					}}
				})
				err := c.start(tm, ctx)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if n := h.count(func(e muster.Event) bool {
					return e.Kind == journal.RunStarted || e.Kind == journal.RunResumed || e.Kind == journal.MemberSpawned
				}); n != 0 {
					t.Errorf("it has begun\n%s", h.tail())
				}
			})
		})
	}
}

// Of those that start at one moment, who comes second reads that a team is at work here, though the first has written no
// record yet, and the archive is refused as it refuses.
func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	for lease, says := range map[string]string{"": "starting a team", workspace.ArchiveLease: "being put aside right now"} {
		bubble(t, func(h *house) {
			for _, name := range []string{workspace.LeadLease, lease} {
				if name == "" {
					continue
				}
				l, err := h.store.Leases().Acquire(h.Context(), name)
				if err != nil {
					h.Fatal(err)
				}
				defer func() { _ = l.Release() }() // the store lives in memory
			}
			err := h.start(answers, nil).fails()
			if !errors.Is(err, muster.ErrHeld) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v", err)
			}
			if made := h.w.git("for-each-ref", "refs/heads/muster"); made != "" {
				t.Errorf("it has made %s", made)
			}
		})
	}
}

// What git says of claims of a board that is gone does not stand in the way of the next board's.
func TestABoardThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.w.git("update-ref", "refs/muster/revoked/1-1", "HEAD")
		words := strings.Replace(crowded, "{task_create: {subject: three}}]", "{spawn_teammate: {name: alice, role: coder, prompt: Work.}}]", 1)
		h.start(words, nil).ends(0, time.Hour)
		if got := h.task(1); got.Landed == nil || got.Fence != 1 {
			t.Errorf("task 1 is %s, and landed with its claim %d: %v", got.Status, got.Fence, got.Landed != nil)
		}
	})
}

// The repository's directory is moved away: the run stops and says so.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(strings.Replace(answers, "- say", "- wait: 10h\n      say", 1), nil)
		h.until("the lead thinks", is(journal.TurnStarted, "lead"))
		if err := os.Rename(h.w.root, h.w.root+".moved"); err != nil {
			h.Fatal(err)
		}
		select {
		case <-r.done:
		case <-time.After(time.Hour):
			r.stop(errors.New("too late"))
			<-r.done
			t.Error("it goes on")
		}
		if r.err == nil || !strings.Contains(r.err.Error(), "is no longer at "+h.w.root) {
			t.Errorf("it ended with %v", r.err)
		}
	})
}
