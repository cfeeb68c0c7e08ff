package worktree_test

import (
	"encoding/json"
	"os"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
)

// Another program that keeps the index in memory writes an old copy of it. Lanes that were made since, or that were
// just being made, go on as they were for the process that works in them: with base, occupant and what they hold.
func TestAnIndexThatIsWrittenAgainIsPutRight(t *testing.T) {
	t.Parallel()
	alice := worktree.Occupant{Member: "alice", Host: "host-1.1"}
	for name, c := range map[string]struct {
		old func(row map[string]any) // nil: the old index has no row
	}{
		"a row that was not there yet": {},
		"a row of a lane in the making": {func(row map[string]any) {
			row["status"], row["maker"] = "creating", "lane-maker-1"
			delete(row, "occupant")
		}},
		"a row of an earlier lane": {func(row map[string]any) {
			row["created_at"], row["base"] = 1.5, "1234"
			delete(row, "occupant")
		}},
		"a row without the occupant": {func(row map[string]any) { delete(row, "occupant") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			lane := w.create("one")
			check(t, w.Occupy(w.ctx(), "one", worktree.Occupant{}, alice))
			gittest.Write(t, lane.Path, map[string]string{"b": "b\n"})
			var doc struct {
				Worktrees map[string]map[string]any `json:"worktrees"`
			}
			check(t, json.Unmarshal([]byte(w.index()), &doc))
			if c.old == nil {
				delete(doc.Worktrees, "one")
			} else {
				c.old(doc.Worktrees["one"])
			}
			old, _ := json.Marshal(doc)
			for range 2 { // as often as the other program writes it
				w.writeIndex(string(old))
				if dir, err := w.Workdir(w.ctx(), "one"); err != nil || dir != lane.Path {
					t.Fatalf("works in %q, %v", dir, err)
				}
				got, err := w.Get(w.ctx(), "one")
				if err != nil || got.Base != lane.Base || got.Status != muster.LaneActive || worktree.OccupantOf(got) != alice {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if _, changed, err := w.Commit(w.ctx(), "one", "work"); err != nil || !changed {
				t.Errorf("committed %v, %v", changed, err)
			}
			check(t, w.Occupy(w.ctx(), "one", alice, worktree.Occupant{}))
		})
	}
}

// A process that has written nothing of a lane finds it by its worktree, and one that is gone is gone.
func TestALaneWithoutARowIsFoundByItsWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	lane := w.create("one")
	w.rows()
	other := w.on(&onDisk{})
	if got, err := other.Get(w.ctx(), "one"); err != nil || got.Path != lane.Path {
		t.Errorf("%+v, %v", got, err)
	}
	w.rows()
	check(t, os.RemoveAll(lane.Path))
	for _, l := range []*worktree.Lanes{w.Lanes, other} {
		_, err := l.Get(w.ctx(), "one")
		wants(t, err, muster.ErrNotFound, "one")
	}
}
