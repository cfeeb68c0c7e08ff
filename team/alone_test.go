package team_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tapped"
	"muster/internal/workspace"
	"muster/journal"
	"muster/llm"
	"muster/store/file"
	"muster/team"
)

const answers = `
speakers:
  lead:
    - say: Forty-two.
`

// shelving leaves what an archive leaves that was interrupted.
func (h *house) shelving() {
	h.Helper()
	gittest.Write(h, h.root, map[string]string{".team/archive/moving": "20200101-000000\n"})
}

// A start that was overtaken between its first look and its lease does not go over what it finds then.
func TestAStartLooksAgainWhenItIsAlone(t *testing.T) {
	t.Parallel()
	run := func(t *team.Team, ctx context.Context) error {
		_, err := t.Run(ctx, "the goal", team.Start{})
		return err
	}
	resume := func(t *team.Team, ctx context.Context) error { _, err := t.Resume(ctx); return err }
	join := func(t *team.Team, ctx context.Context) error { _, err := t.Join(ctx, &team.Workers{}); return err }
	stopped := func(h *house) { h.record(func(*muster.Run) {}); h.create("open") }
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
			require.NoError(h, h.board.Delete(h.Context(), 1, true))
			// The other process has told its end: one that was killed before would be told by this resume.
			require.NoError(h, h.journal.Emit(h.Context(), muster.Event{Kind: journal.RunEnded, Member: muster.Lead}))
		}, resume, muster.ErrNotFound, "the last run has ended"},
		"join, and an archive": {stopped, "host-1", (*house).shelving, join, muster.ErrInvalid, "was interrupted"},
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
					var once sync.Once
					x.Store = tapped.Store{Store: x.Store, Before: func(_ context.Context, op, key string, _ []byte) error {
						if op == "lease" && key == c.lease {
							once.Do(func() {
								if h.meadow.prepared {
									t.Error("it is not alone yet, and has made the target")
								}
								c.happens(h)
							})
						}
						return nil
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

// Who comes second reads that another process starts here, though that has written no record yet, or puts the team aside.
func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		for _, c := range [][2]string{{workspace.LeadLease, "starting a team"}, {workspace.ArchiveLease, "being put aside right now"}} {
			l := require.Value(h.store.Leases().Acquire(h.Context(), c[0]))(t)
			defer func() { _ = l.Release() }() // the store lives in memory
			err := h.start(answers, nil).fails()
			if !errors.Is(err, muster.ErrHeld) || !strings.Contains(err.Error(), c[1]) || h.meadow.prepared {
				t.Errorf("%v; the target is made: %v", err, h.meadow.prepared)
			}
		}
	})
}

// What git says of claims of a board that is gone does not stand in the way of the next board's.
func TestABoardThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.git("update-ref", "refs/muster/revoked/1-1", "HEAD")
		h.start(oneTask+writes, nil).ends(0, time.Hour)
		if got := h.task(1); got.Landed == nil || got.Fence != 1 {
			t.Errorf("task 1 is %s, and landed with its claim %d: %v", got.Status, got.Fence, got.Landed != nil)
		}
	})
}

// The repository's directory is moved away: the run stops and says so.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		r := h.start(strings.Replace(answers, "- say", "- wait: 10h\n      say", 1), nil)
		h.until("the lead thinks", is(journal.TurnStarted, "lead"))
		require.NoError(h, os.Rename(h.root, h.root+".moved"))
		if err := r.fails(); !strings.Contains(err.Error(), "is no longer at "+h.root) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// A team has one root, that of the main worktree. A store that was opened elsewhere is refused before anything is
// written, and FindRoot says where it belongs.
func TestTheStateLiesInTheRepositorysRoot(t *testing.T) {
	root := newRepo(t)
	gittest.Write(t, root, map[string]string{"deep/er/file": "x"})
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, root, "worktree", "add", "-q", linked, "-b", "feature")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(root, link))
	for name, c := range map[string]struct {
		dir     string
		refused bool // a store that is opened right there
	}{
		"the root":          {root, false},
		"a link to it":      {link, false},
		"a subdirectory":    {filepath.Join(root, "deep", "er"), true},
		"a linked worktree": {linked, true},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(dir string) error {
				store, err := file.Open(dir)
				require.NoError(t, err)
				defer store.Close()
				model := func(string) (llm.Model, error) { return nil, nil }
				_, err = team.Open(t.Context(), team.Config{Dir: c.dir, Store: store, Model: model})
				return err
			}
			err := open(c.dir)
			var e *muster.Error
			hinted := errors.Is(err, muster.ErrInvalid) && errors.As(err, &e) &&
				strings.Contains(e.Hint, "team.FindRoot")
			if c.refused != hinted || !c.refused && err != nil {
				t.Errorf("a store in %s: %v", c.dir, err)
			}
			if _, err := os.Stat(filepath.Join(c.dir, ".team")); err == nil {
				t.Error("something was written")
			}
			found := require.Value(team.FindRoot(t.Context(), c.dir))(t)
			if err := open(found); err != nil {
				t.Errorf("a store in the root %s: %v", found, err)
			}
		})
	}
}
