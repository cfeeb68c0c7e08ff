package worktree_test

import (
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

// A lane has changed when its branch has moved from the base, wherever its HEAD is. Its owner may have committed on the
// branch and then checked out the base again: a removal that looked at HEAD and at the files only would lose the
// commit.
func TestALaneWhoseBranchHasMovedHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a.txt": "a\n"})
	lane := w.create("one")
	gittest.Write(t, lane.Path, map[string]string{"b.txt": "b\n"})
	w.git(lane.Path, "add", "-A")
	w.git(lane.Path, "commit", "-q", "-m", "work")
	w.git(lane.Path, "checkout", "-q", "--detach", lane.Base)
	if changed, err := w.Changed(w.ctx(), "one"); err != nil || !changed {
		t.Errorf("changed is %v, %v; its branch has a commit of its own", changed, err)
	}
	wants(t, w.Remove(w.ctx(), "one", false), muster.ErrHeld, "one")
	if tip := w.git(w.root, "rev-parse", "wt/one"); tip == lane.Base {
		t.Error("the commit is gone")
	}
}
