package board

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
)

func TestCyclesAreRefused(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "1")
	w.add(b, "2", 1)
	w.add(b, "3", 2)
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{3}})), muster.Invalid, "task 1 cannot wait for task 3: 1 -> 3 -> 2 -> 1 would wait for each other")
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{1}})), muster.Invalid, "task 1 cannot wait for itself")
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{9}})), muster.Invalid, "task 1 cannot wait for task 9: there is no task 9")
	got, err := b.Update(w.ctx, 3, Patch{AddBlockers: []muster.TaskID{1, 2}})
	if must(w, got, err); !slices.Equal(got.DependsOn, []muster.TaskID{1, 2}) || !slices.Equal(got.BlockedBy, []muster.TaskID{1, 2}) {
		t.Fatalf("%+v", got)
	}
	if m := w.raw("meta"); m["edges"] != 1.0 || m["adding"] != nil {
		t.Errorf("meta: %v", m)
	}
	got, err = b.Update(w.ctx, 3, Patch{RemoveBlockers: []muster.TaskID{2, 8}, By: muster.Lead})
	if must(w, got, err); !slices.Equal(got.DependsOn, []muster.TaskID{1}) || !slices.Equal(got.BlockedBy, []muster.TaskID{1}) {
		t.Fatalf("%+v", got)
	}
	must(w, got, errOf(b.Update(w.ctx, 2, Patch{AddBlockers: []muster.TaskID{3}})))
	must(w, 0, b.Settle(w.ctx))
	w.whole()

	w.take(b, 1, "bob")
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{2}})), muster.Held, "")
}

func TestDelete(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b, other := w.board(), w.board()
		w.add(b, "1")
		w.add(b, "2", 1)
		w.add(b, "3", 1, 2)
		w.refused(b.Delete(w.ctx, 1, false), muster.Invalid, "tasks 2, 3 depend on task 1")
		w.refused(b.Delete(w.ctx, 2, false), muster.Invalid, "task 3 depends on task 2")
		must(w, 0, b.Delete(w.ctx, 2, true))
		if got := w.get(b, 3); !slices.Equal(got.DependsOn, []muster.TaskID{1}) || !slices.Equal(got.BlockedBy, []muster.TaskID{1}) {
			t.Fatalf("%+v", got)
		}
		w.refused(b.Delete(w.ctx, 2, true), muster.NotFound, "there is no task 2")
		must(w, 0, b.Settle(w.ctx))
		w.whole()

		w.take(b, 1, "alice")
		w.refused(b.Delete(w.ctx, 1, false), muster.Held, "")

		// Ids are never given again, not even by a process that starts afterwards.
		must(w, 0, b.Delete(w.ctx, 3, false))
		if m := w.raw("meta"); m["next_id"] != 4.0 {
			t.Errorf("meta: %v", m)
		}
		w.write("meta", `{"next_id": 4, "theirs": {"a": [1]}}`)
		if got := w.add(other, "4"); got.ID != 4 {
			t.Fatalf("got id %d", got.ID)
		}
		must(w, 0, other.Delete(w.ctx, 4, false))
		next, err := UnusedID(w.ctx, w.board())
		if got := w.add(w.board(), "5"); got.ID != 5 || next != 5 || err != nil {
			t.Fatalf("got id %d, said was %d, %v", got.ID, next, err)
		}
		if m := w.raw("meta"); m["next_id"] != 5.0 || m["theirs"] == nil {
			t.Errorf("meta lost what it does not know: %v", m)
		}
	})
}

// A meta document that cannot be read is kept, and made anew: by the tasks and the events, so that no id comes twice.
func TestAnUnreadableMetaIsMadeAnew(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.board()
		for _, subject := range []string{"1", "2", "3"} {
			w.add(b, subject)
		}
		must(w, 0, b.Delete(w.ctx, 3, false)) // only the events know of it then
		w.write("meta", `{"next_id": "seven", "theirs": {"a": [1]}}`)
		var g sync.WaitGroup
		given := make([]muster.TaskID, 4)
		for i := range given {
			b := w.board()
			g.Go(func() {
				got, err := b.Create(w.ctx, Draft{Subject: "x"})
				if err != nil {
					t.Error(err)
				}
				given[i] = got.ID
			})
		}
		g.Wait()
		if slices.Sort(given); !slices.Equal(given, []muster.TaskID{4, 5, 6, 7}) {
			t.Errorf("ids %v", given)
		}
		if m := w.raw("meta"); m["next_id"] != 4.0 || m["theirs"] == nil {
			t.Errorf("meta: %v", m)
		}
		if e := w.events(journal.StateCorrupt); len(e) != 1 || e[0].Text("key") != "meta" || !strings.Contains(e[0].Text("text"), "the next task is 4") {
			t.Errorf("said: %+v", e)
		}
		kept := 0
		for c, err := range w.store.Table(corruption.Table).Changes(w.ctx, 0) {
			var k corruption.Kept
			if must(w, 0, err); json.Unmarshal(c.Data, &k) != nil || !strings.Contains(k.Text, `"seven"`) {
				t.Errorf("kept: %s", c.Data)
			}
			kept++
		}
		if kept != 1 {
			t.Errorf("%d are kept", kept)
		}
		must(w, 0, b.Settle(w.ctx))
	})
}
