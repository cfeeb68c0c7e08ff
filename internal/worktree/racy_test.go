package worktree_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/testing/wait"
	"muster/internal/worktree"
)

// A file that is changed in the second in which it was checked out, and keeps its size, is in the tree of the lane.
func TestAChangeInTheSecondOfTheCheckout(t *testing.T) {
	t.Parallel()
	for _, name := range []muster.Name{"one", "two", "three", "four", "five"} {
		w := newWorld(t, map[string]string{"a": "before\n"})
		wait.For(t, "the beginning of a second", func() bool { return time.Now().Nanosecond() < 3e8 })
		lane := w.create(name)
		path := filepath.Join(lane.Path, "a")
		if err := os.WriteFile(path, []byte("behind\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		index := file(t, filepath.Join(git.DirOf(lane.Path), "index")).ModTime().Unix()
		if file(t, path).ModTime().Unix() != index {
			continue // it took too long
		}
		wait.For(t, "the next second", func() bool { return time.Now().Unix() > index })
		tree, _, err := worktree.Content(w.ctx(), w.Lanes, lane.Name, w.git(w.root, "rev-parse", "HEAD"))
		if err != nil {
			t.Fatal(err)
		}
		if got := w.git(w.root, "show", tree+":a"); got != "behind" {
			t.Errorf("the tree has %q", got)
		}
		return
	}
	t.Fatal("no lane was made and changed within a second")
}
