//go:build linux

package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	root "muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
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
}
