package worktree_test

import (
	"os"
	"testing"
	"time"

	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
)

// A file that keeps its size and is changed in the second in which the index was written is in the tree of the lane.
func TestAChangeInTheSecondOfTheCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "before\n"})
	// Nothing but the second of the last change tells such a file from the old one.
	w.git(w.root, "config", "core.trustctime", "false")
	w.git(w.root, "config", "core.checkStat", "minimal")
	lane := w.create("one")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	old := func(path string) { check(t, os.Chtimes(path, at, at)) }
	old(lane.Path + "/a")
	w.git(lane.Path, "update-index", "--refresh")
	gittest.Write(t, lane.Path, map[string]string{"a": "behind\n"})
	old(lane.Path + "/a")
	old(git.DirOf(lane.Path) + "/index")
	tree, _, err := worktree.Content(w.ctx(), w.Lanes, lane.Name, lane.Base)
	check(t, err)
	equal(t, "the tree", w.git(w.root, "show", tree+":a"), "behind")
}
