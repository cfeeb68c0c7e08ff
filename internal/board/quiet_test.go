package board

import (
	"context"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// recordingBoard is a board in a process whose operations on documents are noted, such as "get 1", "put meta" and "list".
func (w *world) recordingBoard() (*Board, *[]string) {
	ops := new([]string)
	s := interrupted{w.open(), func(op, key string) { *ops = append(*ops, strings.TrimSpace(op+" "+key)) }}
	return New(s, journal.New(s.Log())), ops
}

// count returns how many of the operations are op.
func count(ops []string, op string) (n int) {
	for _, o := range ops {
		if o == op {
			n++
		}
	}
	return n
}

// withHandlers gives the board handlers for all effects.
func withHandlers(b *Board) *Board {
	for _, e := range []muster.Effect{muster.EffectTell, muster.EffectArchive} {
		b.OnEffect(e, func(context.Context, muster.Task) error { return nil })
	}
	return b
}

// eventCount is how many events there are.
func (w *world) eventCount() (n int) {
	w.Helper()
	for _, err := range journal.New(w.store.Log()).Read(w.ctx, 0) {
		if n++; err != nil {
			w.Fatalf("journal: %v", err)
		}
	}
	return n
}

// A step that finds everything as it should be writes no document, tells nobody, and returns the task as it is stored.
func TestWhatChangesNothingWritesNothing(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	w.add(b, "two", 1)
	w.add(b, "three")
	w.add(b, "four")
	w.take(b, 1, "ann")
	must(w, 0, errOf(b.SetLane(w.ctx, 1, 1, "lane", "base")))
	w.take(b, 3, "ann")
	must(w, 0, errOf(b.Release(w.ctx, 3, 1, Release{Reason: "r"})))
	w.take(b, 4, "eve")
	must(w, 0, errOf(b.Complete(w.ctx, 4, 1, Outcome{Result: "done"})))
	same := "two"
	for name, step := range map[string]func(*Board) (muster.Task, error){
		"the same subject": func(b *Board) (muster.Task, error) { return b.Update(w.ctx, 2, Patch{Subject: &same}) },
		"a blocker that it has": func(b *Board) (muster.Task, error) {
			return b.Update(w.ctx, 2, Patch{AddBlockers: []muster.TaskID{1}})
		},
		"a blocker that it does not have": func(b *Board) (muster.Task, error) {
			return b.Update(w.ctx, 2, Patch{RemoveBlockers: []muster.TaskID{3}})
		},
		"nothing to retry": func(b *Board) (muster.Task, error) { return b.Update(w.ctx, 2, Patch{Retry: true}) },
		"the same lane":    func(b *Board) (muster.Task, error) { return b.SetLane(w.ctx, 1, 1, "lane", "base") },
		"released again": func(b *Board) (muster.Task, error) {
			return b.Release(w.ctx, 3, 1, Release{Reason: "r", Counts: true})
		},
		"completed again": func(b *Board) (muster.Task, error) { return b.Complete(w.ctx, 4, 1, Outcome{Result: "again"}) },
		"completed again by hand": func(b *Board) (muster.Task, error) {
			return b.CompleteByHand(w.ctx, 4, muster.User, "again")
		},
		"settled": func(b *Board) (muster.Task, error) { return muster.Task{}, b.Settle(w.ctx) },
	} {
		b, ops := w.recordingBoard()
		before := w.eventCount() + len(w.lines())
		got, err := step(withHandlers(b))
		must(w, 0, err)
		if slices.ContainsFunc(*ops, func(op string) bool { return strings.HasPrefix(op, "put") }) {
			t.Errorf("%s: it did %q", name, *ops)
		}
		if after := w.eventCount() + len(w.lines()); after != before {
			t.Errorf("%s: %d events more", name, after-before)
		}
		if got.ID != 0 && got.UpdatedAt != w.get(b, got.ID).UpdatedAt {
			t.Errorf("%s: it returned %+v, stored is %+v", name, got, w.get(b, got.ID))
		}
	}
}

// To settle a board that is whole reads the tasks' listing and the meta document, whatever the tasks went through.
func TestSettlingAWholeBoardReadsNoTask(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	w.add(b, "two")
	w.write("3", `{"id": 3, "subject": "c", "status": "pending", "blockedBy": [2, 1, 2], "dependsOn": [2, 1]}`)
	w.write("4", `{"id": 4, "subject": "d", "status": "completed", "completed_by": "zoe", "fence": 1}`)
	w.write("5", `{"id": 5, "subject": "itself", "blockedBy": [5]}`)
	w.take(b, 2, "ann")
	warm, warmed := w.recordingBoard()
	withHandlers(warm)
	must(w, 0, warm.Settle(w.ctx))
	must(w, 0, errOf(b.Release(w.ctx, 2, 1, Release{})))
	cold, cooled := w.recordingBoard()
	for _, c := range []struct {
		b   *Board
		ops *[]string
	}{{withHandlers(cold), cooled}, {warm, warmed}, {warm, warmed}} {
		*c.ops = nil
		must(w, 0, c.b.Settle(w.ctx))
		isOfTask := func(op string) bool { return op != "list" && op != "get meta" }
		if slices.ContainsFunc(*c.ops, isOfTask) || count(*c.ops, "get meta") != 1 {
			t.Errorf("it did %q", *c.ops)
		}
		if len(c.b.graph.dirty) != 0 {
			t.Errorf("the next one has to look at %v", c.b.graph.dirty)
		}
	}
}

// A claim reads the task and its blockers and writes the task. It does not look at the whole board.
func TestAClaimReadsTheTaskAndItsBlockers(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	w.add(b, "two", 1)
	must(w, 0, errOf(b.CompleteByHand(w.ctx, 1, muster.User, "")))
	if got := w.add(b, "three", 1, 1); len(got.BlockedBy) != 0 || !slices.Equal(got.DependsOn, []muster.TaskID{1}) {
		t.Errorf("%+v", got)
	}
	b, ops := w.recordingBoard()
	w.take(b, 2, "ann")
	if want := []string{"get 2", "get 1", "put 2"}; !slices.Equal(*ops, want) {
		t.Errorf("it did %q, want %q", *ops, want)
	}
}

// An id is retired before its task is deleted, unless a higher one has been.
func TestAnIDIsRetiredOnce(t *testing.T) {
	w := inMemory(t)
	other, done := w.recordingBoard()
	for range 3 {
		w.add(other, "x")
	}
	must(w, 0, other.Delete(w.ctx, 3, false))
	if slices.Index(*done, "put meta") > slices.Index(*done, "delete 3") {
		t.Errorf("it did %q", *done)
	}
	b, ops := w.recordingBoard()
	must(w, 0, b.Delete(w.ctx, 2, false))
	if slices.Contains(*ops, "put meta") || w.raw("meta")["next_id"] != 4.0 {
		t.Errorf("it did %q, and the next id is %v", *ops, w.raw("meta")["next_id"])
	}
}

// A process that finds blockedBy behind what it knows, and then right in the document, leaves the document alone. A
// blocker that was completed since is not put there.
func TestBlockedByThatIsRightIsNotWritten(t *testing.T) {
	w := inMemory(t)
	b, ops := w.recordingBoard()
	w.write("1", `{"id": 1, "subject": "1"}`)
	w.write("2", `{"id": 2, "subject": "2", "blockedBy": [], "dependsOn": [1]}`)
	must(w, 0, b.tasks.Refresh(w.ctx))
	must(w, 0, w.board().Settle(w.ctx))
	*ops = nil
	must(w, 0, b.updateBlockedBy(w.ctx, 2))
	if !slices.Equal(*ops, []string{"get 2"}) {
		t.Errorf("it did %q", *ops)
	}
	w.write("2", `{"id": 2, "subject": "2", "blockedBy": [], "dependsOn": [1]}`)
	must(w, 0, b.tasks.Refresh(w.ctx))
	must(w, 0, errOf(w.board().CompleteByHand(w.ctx, 1, muster.User, "")))
	must(w, 0, b.updateBlockedBy(w.ctx, 2))
	if got := w.get(b, 2); len(got.BlockedBy) != 0 {
		t.Errorf("%+v", got)
	}
}

// Announced edges that the task has already change it no more.
func TestEdgesThatAreThereAreNotWrittenAgain(t *testing.T) {
	w := inMemory(t)
	w.add(w.board(), "1")
	w.add(w.board(), "2", 1)
	w.write("meta", `{"edges": 1, "adding": [{"n": 1, "id": 2, "on": [1]}]}`)
	b, ops := w.recordingBoard()
	must(w, 0, b.Settle(w.ctx))
	if slices.Contains(*ops, "put 2") || count(*ops, "put meta") != 1 {
		t.Errorf("it did %q", *ops)
	}
}
