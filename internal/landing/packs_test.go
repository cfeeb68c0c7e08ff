package landing_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"muster/internal/durable"
	"muster/internal/testing/tier"
)

// Landings and the archives of their lanes leave few packs, however many there are, and no loose ends of git's.
func TestManyLandingsLeaveFewPacks(t *testing.T) {
	tier.All(t) // forty landings
	t.Parallel()
	w := newWorld(t, "", nil)
	const most = 21 // when there are more they are merged
	for i := range 40 {
		task, _ := w.task(fmt.Sprintf("Task %d", i), "alice", map[string]string{fmt.Sprintf("file-%d", i): "x\n"})
		v := w.lands(task)
		if _, err := w.lanes.Archive(w.ctx(), v.Task.Worktree); err != nil {
			t.Fatal(err)
		}
		if packs := durable.Glob(filepath.Join(w.root, ".git", "objects", "pack"), "*.pack"); len(packs) > most+1 {
			t.Fatalf("%d packs after %d landings", len(packs), i+1)
		}
	}
	if left := durable.Glob(filepath.Join(w.root, ".git", "objects", "pack"), "tmp_*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if n := w.git("rev-list", "--count", "main.."+target); n != "40" {
		t.Errorf("%s commits have landed", n)
	}
}
