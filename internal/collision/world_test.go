package collision_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

func TestMain(m *testing.M) { gittest.Main(m) }

const target = "refs/heads/muster/t"

// world is a repository with a board, lanes, and a watcher whose Look the test calls.
type world struct {
	*collision.Watcher
	t       *testing.T
	root    string
	repo    *git.Repo
	lanes   *worktree.Lanes
	board   *board.Board
	journal *journal.Journal
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	root := gittest.Repo(t, files)
	repo, err := git.Open(t.Context(), root)
	require.NoError(t, err)
	require.NoError(t, repo.Exclude(t.Context(), paths.Excluded))
	gittest.Git(t, root, "branch", "muster/t")
	s := mem.New()
	w := &world{t: t, root: root, repo: repo, journal: journal.New(s.Log())}
	w.board = board.New(s, w.journal)
	w.lanes, err = worktree.Open(repo, durable.New(durable.OS{}), paths.Dir(root), w.journal, s.Log(), worktree.Options{})
	require.NoError(t, err)
	w.Watcher = w.newWatcher()
	return w
}

// newWatcher is the watcher of a process that begins.
func (w *world) newWatcher() *collision.Watcher {
	x := collision.New(collision.Options{Repo: w.repo, Lanes: w.lanes, Board: w.board, Journal: w.journal, Target: target,
		Root: w.root, Host: "here", Log: slog.New(slog.DiscardHandler)})
	w.t.Cleanup(x.Close)
	return x
}

// task gives the owner a task in a lane, and returns the lane's directory.
func (w *world) task(owner muster.Name) (id muster.TaskID, dir string) {
	w.t.Helper()
	ctx := w.t.Context()
	t, err := w.board.Create(ctx, board.Draft{Subject: "work of " + string(owner), CreatedBy: muster.Lead})
	if err == nil {
		t, err = w.board.Claim(ctx, t.ID, board.Claim{Owner: owner})
	}
	require.NoError(w.t, err)
	name := muster.Name(fmt.Sprintf("lane-%d", t.ID))
	lane, err := w.lanes.Create(ctx, name, t.ID, target)
	if err == nil {
		err = w.lanes.Occupy(ctx, name, worktree.Occupant{}, worktree.Occupant{Member: owner, Host: "here"})
	}
	if err == nil {
		_, err = w.board.SetLane(ctx, t.ID, t.Fence, name, lane.Base)
	}
	require.NoError(w.t, err)
	return t.ID, lane.Path
}

// write writes files into a lane and says so.
func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	gittest.Write(w.t, dir, files)
	w.Changed(muster.Name(filepath.Base(dir)))
}

func (w *world) mustLook() {
	w.t.Helper()
	err := w.Look(w.t.Context())
	for range 9 { // a look at many lanes may take longer than it may, on a slow machine
		if errors.Is(err, context.DeadlineExceeded) {
			err = w.Look(w.t.Context())
		}
	}
	require.NoError(w.t, err)
}

// hears returns what a member is told, in short.
func (w *world) hears(member muster.Name, task muster.TaskID) (all []string) {
	for _, n := range w.Take(member, task) {
		s := short(n.Collision)
		if n.IsOver {
			s += " over"
		}
		all = append(all, s)
	}
	return all
}

// heard fails the test unless a member is told just that, in short.
func (w *world) heard(member muster.Name, task muster.TaskID, want string) {
	w.t.Helper()
	equal(w.t, string(member)+" hears", fmt.Sprint(w.hears(member, task)), want)
}

// short is a collision in a line: 1+2 f:3|4.
func short(c muster.Collision) string {
	s := fmt.Sprintf("%d+%d", c.Task, c.With)
	if len(c.Landed) > 0 {
		s += fmt.Sprint(c.Landed)
	}
	for _, f := range c.Files {
		s += " " + f.Path
		if f.Lines != "" {
			s += ":" + f.Lines + "|" + f.WithLines
		}
	}
	return s
}

// events returns how many collisions the journal tells of.
func (w *world) events() (n int) {
	w.t.Helper()
	for e, err := range w.journal.Read(w.t.Context(), 0) {
		require.NoError(w.t, err)
		if e.Kind == journal.LaneCollides {
			n++
		}
	}
	return n
}

// land moves the target to a commit with these files, with the trailer of a task.
func (w *world) land(id muster.TaskID, files map[string]string) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "landing")
	gittest.Git(w.t, w.root, "worktree", "add", "-q", dir, "muster/t")
	gittest.Write(w.t, dir, files)
	gittest.Git(w.t, dir, "add", "-A")
	gittest.Git(w.t, dir, "commit", "-q", "-m", fmt.Sprintf("landed\n\nMuster-Task: %d", id))
	gittest.Git(w.t, w.root, "worktree", "remove", "--force", dir)
}

// equal fails the test unless both are the same.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
