package worktree_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
)

// Another program that keeps the index in memory writes an old copy of it, in which a lane is still being made, or is not
// there. It goes on as it was for the process that works in it.
func TestAnIndexThatIsWrittenAgainIsPutRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	nobody, alice := worktree.Occupant{}, worktree.Occupant{Member: "alice", Host: "host-1.1"}
	lane := w.create("one", map[string]string{"b": "b\n"})
	empty := w.index()
	creating := strings.Replace(empty, `"status": "active"`, `"status": "creating", "maker": "lane-maker-1"`, 1)
	check(t, w.Occupy(w.ctx(), "one", nobody, alice))
	for _, old := range []string{`{"worktrees":{}}`, empty, creating} {
		w.writeIndex(old)
		returns(t, lane.Path)(w.Workdir(w.ctx(), "one"))
		got, err := w.Get(w.ctx(), "one")
		if err != nil || got.Base != lane.Base || got.Status != muster.LaneActive || worktree.OccupantOf(got) != alice {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, changed, err := w.Commit(w.ctx(), "one", "work"); err != nil || !changed || gittest.Read(t, lane.Path, "b") != "b\n" {
		t.Errorf("committed %v, %v", changed, err)
	}
	check(t, w.Occupy(w.ctx(), "one", alice, nobody))
}
