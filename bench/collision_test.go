//go:build linux

package bench

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	root "muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/worktree"
)

// BenchmarkCollision is a look for collisions after a change in one of eight lanes of a repository of 300 files.
func BenchmarkCollision(b *testing.B) {
	ctx := b.Context()
	w := newWorld(b, 300)
	for _, kv := range [][2]string{{"HOME", filepath.Join(w.base, "home")}, {"GIT_CONFIG_NOSYSTEM", "1"}} {
		b.Setenv(kv[0], kv[1])
	}
	s, j := w.open()
	repo := need(git.Open(ctx, w.root))(b)
	tasks := board.New(s, j)
	lanes := need(worktree.Open(repo, durable.New(durable.OS{}), paths.Dir(w.root), j, s.Log(), worktree.Options{}))(b)
	branch := need(repo.CurrentBranch(ctx))(b)
	watcher := collision.New(collision.Options{Repo: repo, Lanes: lanes, Board: tasks, Journal: j, Target: branch,
		Root: w.root, Host: "here", Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(watcher.Close)
	var dirs []string
	for i := range 8 {
		t := need(tasks.Create(ctx, board.Draft{Subject: fmt.Sprint(i), CreatedBy: root.Lead}))(b)
		t = need(tasks.Claim(ctx, t.ID, board.Claim{Owner: "alice"}))(b)
		name := root.Name(fmt.Sprintf("lane-%d", i))
		lane := need(lanes.Create(ctx, name, t.ID, "HEAD"))(b)
		must(b, lanes.Occupy(ctx, name, worktree.Occupant{}, worktree.Occupant{Member: "alice", Host: "here"}))
		need(tasks.SetLane(ctx, t.ID, t.Fence, name, lane.Base))(b)
		must(b, os.WriteFile(filepath.Join(lane.Path, "same"), []byte(name), 0o600))
		dirs = append(dirs, lane.Path)
	}
	must(b, watcher.Look(ctx))
	var ours samples
	for i := range rounds {
		must(b, os.WriteFile(filepath.Join(dirs[0], "same"), fmt.Appendln(nil, "round", i), 0o600))
		watcher.Changed("lane-0")
		start := time.Now()
		must(b, watcher.Look(ctx))
		ours.took(start)
	}
	report(b, "8", figure{what: "a look for collisions after a change in one of 8 lanes, in the background", unit: "ms",
		ours: ours.median(), limit: 200})
}
