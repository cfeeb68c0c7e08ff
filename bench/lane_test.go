//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	root "muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/wait"
	"muster/internal/worktree"
)

// BenchmarkLane is a lane in a repository of 5,000 files beside plain `git worktree add`, both new each time.
func BenchmarkLane(b *testing.B) {
	ctx := b.Context()
	w := newWorld(b, 5_000)
	for _, kv := range [][2]string{{"HOME", filepath.Join(w.base, "home")}, {"GIT_CONFIG_NOSYSTEM", "1"}} {
		b.Setenv(kv[0], kv[1])
	}
	s, j := w.open()
	lanes := need(worktree.Open(need(git.Open(ctx, w.root))(b), durable.New(durable.OS{}), paths.Dir(w.root), j, s.Log(), worktree.Options{}))(b)
	var ours, plain samples
	ways := []func(i int){func(i int) {
		name := root.Name(fmt.Sprintf("lane-%d", i))
		start := time.Now()
		need(lanes.Create(ctx, name, 0, "HEAD"))(b)
		ours.took(start)
		must(b, lanes.Remove(ctx, name, true))
	}, func(i int) {
		dir := filepath.Join(w.base, "plain")
		start := time.Now()
		w.git("worktree", "add", "-q", "--no-track", "-b", fmt.Sprint("plain-", i), dir)
		plain.took(start)
		w.git("worktree", "remove", "--force", dir)
	}}
	for i := range rounds {
		for k := range ways { // another one begins each time: none always follows the same clearing away
			ways[(i+k)%len(ways)](i)
		}
	}
	report(b, "5000", figure{what: "a lane in a repository of 5,000 files", unit: "ms", ours: ours.median(), limit: plain.median(),
		beside: plain.median(), is: "plain `git worktree add`"})
	report(b, "warm", figure{what: "... made of a spare, after the target has moved", unit: "ms", ours: warmLanes(b, w, lanes), limit: 100,
		beside: plain.median(), is: "plain `git worktree add`"})
}

// warmLanes measures lanes that are made while the process keeps spares, which are at an older commit than the lane.
func warmLanes(b *testing.B, w *world, lanes *worktree.Lanes) float64 {
	var ours samples
	ready := w.serveSpares(b, lanes)
	for i := range rounds {
		ready()
		must(b, os.WriteFile(filepath.Join(w.root, "moved"), fmt.Append(nil, i), 0o644))
		w.git("add", "moved")
		w.git("commit", "-q", "-m", "moved")
		name := root.Name(fmt.Sprintf("warm-%d", i))
		start := time.Now()
		need(lanes.Create(b.Context(), name, 0, "HEAD"))(b)
		ours.took(start)
		must(b, lanes.Remove(b.Context(), name, true))
	}
	return ours.median()
}

// serveSpares keeps spares as a run does, until the benchmark ends. ready waits until they are there.
func (w *world) serveSpares(b *testing.B, lanes *worktree.Lanes) (ready func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		lanes.Spares.Serve(ctx, func(context.Context) (string, error) { return w.head(), nil })
		close(ended)
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return func() {
		wait.Within(b, time.Minute, "spares", func() bool {
			found, _ := filepath.Glob(filepath.Join(w.root, ".worktrees", ".spare-*", "index"))
			return len(found) == 2
		})
	}
}
