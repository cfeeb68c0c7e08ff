//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	root "muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/testing/wait"
	"muster/internal/worktree"
)

// landWorld is a repository with what lands work in it, without a check.
type landWorld struct {
	*world
	board *board.Board
	lanes *worktree.Lanes
	land  *landing.Lander
}

func newLandWorld(b *testing.B, files int) *landWorld {
	b.Helper()
	ctx := b.Context()
	w := newWorld(b, files)
	for _, kv := range [][2]string{{"HOME", filepath.Join(w.base, "home")}, {"GIT_CONFIG_NOSYSTEM", "1"}} {
		b.Setenv(kv[0], kv[1])
	}
	s, j := w.open()
	repo := need(git.Open(ctx, w.root))(b)
	must(b, repo.Exclude(ctx, paths.Excluded))
	need(landing.PrepareTarget(ctx, repo, "muster/bench", false, false))(b)
	dir := paths.Dir(w.root)
	x := &landWorld{world: w, board: board.New(s, j)}
	x.lanes = need(worktree.Open(repo, durable.New(durable.OS{}), dir, j, s.Log(), worktree.Options{}))(b)
	x.land = landing.New(repo, x.lanes, x.board, j, nil, landing.Options{Target: "refs/heads/muster/bench", Outputs: dir.Outputs()})
	return x
}

func (w *landWorld) task(ctx context.Context, n int) root.Task {
	w.tb.Helper()
	t := need(w.board.Create(ctx, board.Draft{Subject: fmt.Sprintf("task %d", n), CreatedBy: root.Lead}))(w.tb)
	t = need(w.board.Claim(ctx, t.ID, board.Claim{Owner: "alice"}))(w.tb)
	tip := need(w.land.Target(ctx))(w.tb)
	lane := need(w.lanes.Create(ctx, root.LaneName(t.ID, t.Subject), t.ID, tip))(w.tb)
	must(w.tb, os.WriteFile(filepath.Join(lane.Path, fmt.Sprintf("new%d.txt", n)), fmt.Appendf(nil, "%d\n", n), 0o644))
	return need(w.board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base))(w.tb)
}

func (w *landWorld) landed() int {
	w.tb.Helper()
	return strings.Count(w.output(w.command("git", "rev-list", "main..muster/bench")), "\n")
}

// BenchmarkLand is a landing without its check in repositories of two sizes, beside what plain git needs at least for one. git
// compares each file that was checked out in the second of the index with what is staged, so both get an index that is a second
// younger than the files.
func BenchmarkLand(b *testing.B) {
	for _, size := range []struct {
		files int
		limit float64
	}{{5_000, 150}, {50_000, 400}} {
		w := newLandWorld(b, size.files)
		ctx := b.Context()
		var ours, plain samples
		for i := range rounds {
			t := w.task(ctx, i)
			wait.Elapse(1100 * time.Millisecond)
			w.git("-C", filepath.Join(w.root, ".worktrees", string(t.Worktree)), "update-index", "-q", "--refresh")
			start := time.Now()
			v := need(w.land.Land(ctx, t.ID, t.Fence, "Adds a file.", "alice"))(b)
			ours.took(start)
			if v.Task.Landed == nil {
				b.Fatalf("it has not landed: %s", v.Text)
			}
			lane := filepath.Join(w.base, "plain")
			w.git("worktree", "add", "-q", "--detach", lane, "muster/bench")
			wait.Elapse(1100 * time.Millisecond)
			w.git("-C", lane, "reset", "-q", "--hard")
			must(b, os.WriteFile(filepath.Join(lane, "plain.txt"), fmt.Appendf(nil, "%d\n", i), 0o644))
			start = time.Now()
			w.git("-C", lane, "add", "-A")
			w.git("-C", lane, "commit", "-q", "-m", "plain")
			head := strings.TrimSpace(w.output(w.command("git", "-C", lane, "rev-parse", "HEAD")))
			tree := strings.TrimSpace(w.output(w.command("git", "merge-tree", "--write-tree", "muster/bench", head)))
			w.git("update-ref", "refs/heads/plain", w.commitTree(tree, "muster/bench"))
			plain.took(start)
			w.git("worktree", "remove", "--force", lane)
		}
		if n := w.landed(); n != rounds {
			b.Errorf("%d of %d tasks are on the target", n, rounds)
		}
		report(b, fmt.Sprint(size.files), figure{what: fmt.Sprintf("a landing without its check, %d files", size.files), unit: "ms", ours: ours.median(),
			limit: size.limit, beside: plain.median(), is: "plain git: add, commit, merge-tree, commit-tree, update-ref"})
	}
}

func (w *world) commitTree(tree, onto string) string {
	w.tb.Helper()
	return strings.TrimSpace(w.output(w.command("git", "commit-tree", "-p", onto, "-m", "a task", tree)))
}
