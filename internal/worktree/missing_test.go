package worktree_test

import (
	"os"
	"slices"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

// A lane whose directory and branch are missing loses its row and nothing else. When the directory comes back, as one on
// a disk that was not mounted, it is a worktree with all its files, and recovery finds the lane again.
func TestALaneThatWasMissingComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("away")
	gittest.Write(t, lane.Path, map[string]string{"b": "never committed\n"})
	elsewhere := t.TempDir() + "/away"
	if err := os.Rename(lane.Path, elsewhere); err != nil {
		t.Fatal(err)
	}
	w.git(w.root, "update-ref", "-d", "refs/heads/wt/away")
	if err := w.Recover(w.ctx()); err != nil {
		t.Fatal(err)
	}
	_, err := w.Get(w.ctx(), "away")
	wants(t, err, muster.ErrNotFound, "away")
	if told := w.events(); !slices.Contains(told, "worktree.remove.after away") {
		t.Errorf("the events are %q", told)
	}
	if err := os.Rename(elsewhere, lane.Path); err != nil {
		t.Fatal(err)
	}
	w.git(w.root, "update-ref", "refs/heads/wt/away", lane.Base)
	if status := w.git(lane.Path, "status", "--porcelain"); status != "?? b" {
		t.Errorf("the status of what came back is %q", status)
	}
	if err := w.Recover(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Get(w.ctx(), "away"); err != nil || got.Path != lane.Path || got.Status != muster.LaneActive {
		t.Errorf("found again: %+v, %v", got, err)
	}
}
