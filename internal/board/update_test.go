package board

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/journal"
)

// A change is told once, with the names of the fields that are different now, and with its time.
func TestAnUpdateSaysWhatItChanged(t *testing.T) {
	text, role, number, yes := "other", "tester", 7, true
	for name, c := range map[string]struct {
		stored string // fields of task 1 beside id, subject and status
		p      Patch
		want   []any
	}{
		"subject":     {p: Patch{Subject: &text}, want: []any{"subject"}},
		"description": {p: Patch{Description: &text}, want: []any{"description"}},
		"role":        {p: Patch{Role: &role}, want: []any{"claim_role"}},
		"priority":    {p: Patch{Priority: &number}, want: []any{"priority"}},
		"plan":        {p: Patch{RequirePlan: &yes}, want: []any{"require_plan"}},
		"blocker":     {p: Patch{AddBlockers: []muster.TaskID{2}}, want: []any{"blockedBy"}},
		"all": {p: Patch{Subject: &text, Description: &text, Role: &role, Priority: &number, RequirePlan: &yes,
			AddBlockers: []muster.TaskID{2}}, want: []any{"subject", "description", "claim_role", "priority", "require_plan",
			"blockedBy"}},
		"attempts":          {`"attempts": 1`, Patch{Retry: true}, []any{"retry"}},
		"returns":           {`"returns": 1`, Patch{Retry: true}, []any{"retry"}},
		"rounds":            {`"rounds": 1`, Patch{Retry: true}, []any{"retry"}},
		"set aside":         {`"status": "needs_attention", "effects": ["tell"]`, Patch{Retry: true}, []any{"retry"}},
		"nothing to retry":  {`"description": "x"`, Patch{Retry: true}, nil},
		"only the priority": {`"description": "x"`, Patch{Retry: true, Priority: &number}, []any{"priority"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := inMemory(t)
			b := w.board()
			stored := c.stored
			if stored == "" {
				stored = `"description": ""`
			}
			w.write("1", `{"id": 1, "subject": "one", "status": "pending", `+stored+`}`)
			w.write("2", `{"id": 2, "subject": "two", "status": "pending"}`)
			time.Sleep(time.Minute)
			got, err := b.Update(w.ctx, 1, c.p)
			must(w, got, err)
			e := w.events(journal.TaskUpdated)
			if c.want == nil {
				if len(e) != 0 || got.UpdatedAt != 0 {
					t.Errorf("%s: changed at %f, %+v", name, got.UpdatedAt, e)
				}
				return
			}
			if len(e) != 1 || cmp.Diff(c.want, e[0].Fields["changed"]) != "" || e[0].At != now() {
				t.Errorf("%s: told %+v, want %v at %f", name, e, c.want, now())
			}
			if is := w.get(b, 1); is.UpdatedAt != now() || got.UpdatedAt != now() || len(is.Effects) != 0 ||
				is.Attempts+is.Returns+is.Rounds != 0 || is.Status != muster.Pending {
				t.Errorf("%s: %+v, stored %+v", name, got, is)
			}
			if c.p.Description != nil && got.Description != text || c.p.Priority != nil && got.Priority != number {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// A patch that is refused has changed nothing: no part of it is done before the whole is known to be allowed.
func TestARefusedUpdateChangesNothing(t *testing.T) {
	bad, role, good := "two\nlines", "two words", "good"
	control := "a\ab"
	away := []muster.TaskID{1}
	for name, c := range map[string]struct {
		stored string
		p      Patch
		want   error
	}{
		"subject":               {`"status": "pending"`, Patch{Subject: &bad, RemoveBlockers: away}, muster.ErrInvalid},
		"description":           {`"status": "pending"`, Patch{Description: &control, RemoveBlockers: away}, muster.ErrInvalid},
		"role":                  {`"status": "pending"`, Patch{Role: &role, RemoveBlockers: away}, muster.ErrInvalid},
		"subject and blocker":   {`"status": "pending"`, Patch{Subject: &bad, AddBlockers: []muster.TaskID{2}}, muster.ErrInvalid},
		"bad and good":          {`"status": "pending"`, Patch{Description: &good, Role: &role}, muster.ErrInvalid},
		"blocker of a held one": {`"status": "in_progress", "owner": "ann"`, Patch{AddBlockers: []muster.TaskID{2}, RemoveBlockers: away}, muster.ErrHeld},
		"blocker of one that is somebody's": {`"status": "pending", "owner": "ann"`,
			Patch{AddBlockers: []muster.TaskID{2}, RemoveBlockers: away}, muster.ErrHeld},
		"retry of a held one":     {`"status": "in_progress", "owner": "ann"`, Patch{Retry: true, RemoveBlockers: away}, muster.ErrHeld},
		"retry of a completed":    {`"status": "completed"`, Patch{Retry: true, RemoveBlockers: away}, muster.ErrInvalid},
		"subject of a completed":  {`"status": "completed"`, Patch{Subject: &good, RemoveBlockers: away}, muster.ErrInvalid},
		"an unknown blocker":      {`"status": "pending"`, Patch{Subject: &good, AddBlockers: []muster.TaskID{9}}, muster.ErrInvalid},
		"a blocker and a bad one": {`"status": "pending"`, Patch{AddBlockers: []muster.TaskID{2, 3}}, muster.ErrInvalid},
	} {
		w := inMemory(t)
		b := w.board()
		w.write("1", `{"id": 1, "subject": "1", "status": "completed", "completed_by": "zoe"}`)
		w.write("2", `{"id": 2, "subject": "2", "status": "pending"}`)
		w.write("3", `{"id": 3, "subject": "3", "dependsOn": [1], "blockedBy": [], "fence": 1, `+c.stored+`}`)
		before := w.raw("3")
		got, err := b.Update(w.ctx, 3, c.p)
		if !errors.Is(err, c.want) || got.ID != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if d := cmp.Diff(before, w.raw("3")); d != "" || w.eventCount() != 0 {
			t.Errorf("%s: %d events, and it is different: %s", name, w.eventCount(), d)
		}
	}
}

// What does not concern the work of its owner can be changed while somebody has the task.
func TestAHeldTaskCanBeChanged(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "1")
	w.write("2", `{"id": 2, "subject": "2", "dependsOn": [1], "status": "in_progress", "owner": "ann", "fence": 1}`)
	number := 7
	got, err := b.Update(w.ctx, 2, Patch{Priority: &number, RemoveBlockers: []muster.TaskID{1}})
	if must(w, got, err); got.Priority != 7 || len(got.DependsOn) != 0 || got.Owner != "ann" || got.Fence != 1 {
		t.Errorf("%+v", got)
	}
	w.write("3", `{"id": 3, "subject": "3", "status": "needs_attention"}`) // may wait before its retry
	got, err = b.Update(w.ctx, 3, Patch{AddBlockers: []muster.TaskID{1}})
	if must(w, got, err); !slices.Equal(got.BlockedBy, []muster.TaskID{1}) {
		t.Errorf("%+v", got)
	}
}

// A task that is completed while it is being changed stays as it was completed.
func TestACompletionComesBeforeTheChange(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	w.add(other, "one")
	b := w.interruptedBoard(at("put", "1"), func() {
		must(w, 0, errOf(other.CompleteByHand(w.ctx, 1, muster.User, "done")))
	})
	text := "other"
	w.refused(errOf(b.Update(w.ctx, 1, Patch{Subject: &text})), muster.Invalid, "task 1 is completed")
	if got := w.get(other, 1); got.Subject != "one" || got.Result != "done" {
		t.Errorf("%+v", got)
	}
}

// An edge that others remove meanwhile is told of once, by who removed it.
func TestARemovedEdgeIsToldOnce(t *testing.T) {
	for name, does := range map[string]func(w *world, other *Board){
		"changes the task": func(w *world, other *Board) {
			text := "other"
			must(w, 0, errOf(other.Update(w.ctx, 3, Patch{Subject: &text})))
		},
		"removes the edge": func(w *world, other *Board) {
			must(w, 0, errOf(other.Update(w.ctx, 3, Patch{RemoveBlockers: []muster.TaskID{1}})))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := inMemory(t)
			other := w.board()
			w.add(other, "1")
			w.add(other, "2")
			w.add(other, "3", 1, 2)
			time.Sleep(time.Minute)
			b := w.interruptedBoard(at("put", "3"), func() { does(w, other) })
			got, err := b.Update(w.ctx, 3, Patch{RemoveBlockers: []muster.TaskID{1}})
			must(w, got, err)
			e := w.events(journal.TaskEdgeRemoved)
			if len(e) != 1 || e[0].Number("blocker") != 1 || e[0].At != now() || got.UpdatedAt != now() ||
				!slices.Equal(got.DependsOn, []muster.TaskID{2}) {
				t.Errorf("the other %s: %+v, and %+v", name, e, got)
			}
		})
	}
}

// A blocker that is deleted while a task comes to wait for it leaves no edge behind, neither in the task nor in what the
// caller is told.
func TestABlockerIsDeletedBeforeTheEdgeIsThere(t *testing.T) {
	gone := muster.TaskID(2)
	for name, c := range map[string]struct {
		task muster.TaskID
		do   func(w *world, b *Board) (muster.Task, error)
	}{
		"create": {4, func(w *world, b *Board) (muster.Task, error) {
			return b.Create(w.ctx, Draft{Subject: "x", BlockedBy: []muster.TaskID{1, gone}})
		}},
		"update": {3, func(w *world, b *Board) (muster.Task, error) {
			return b.Update(w.ctx, 3, Patch{AddBlockers: []muster.TaskID{1, gone}})
		}},
		"finish for another": {3, func(w *world, b *Board) (muster.Task, error) {
			w.write("meta", fmt.Sprintf(`{"edges": 1, "adding": [{"n": 1, "id": 3, "on": [1, %d]}]}`, gone))
			must(w, 0, errOf(b.Update(w.ctx, 1, Patch{RemoveBlockers: []muster.TaskID{3}})))
			return b.Get(w.ctx, 3)
		}},
	} {
		w := inMemory(t)
		other := w.board()
		for range 3 {
			w.add(other, "x")
		}
		b := w.interruptedBoard(at("put", key(c.task)), func() { must(w, 0, other.Delete(w.ctx, gone, true)) })
		got, err := c.do(w, b)
		must(w, got, err)
		stored := w.get(other, c.task)
		for _, t := range []muster.Task{got, stored} {
			if !slices.Equal(t.DependsOn, []muster.TaskID{1}) || !slices.Equal(t.BlockedBy, []muster.TaskID{1}) {
				w.Errorf("%s: %+v", name, t)
			}
		}
	}
}

// An edge that was announced for a task that is gone or completed by now comes to nothing, and is in nobody's way.
func TestAnAnnouncedEdgeOfATaskThatIsOver(t *testing.T) {
	for _, id := range []muster.TaskID{2, 9} {
		w := inMemory(t)
		b := w.board()
		w.add(b, "1")
		w.add(b, "2")
		must(w, 0, errOf(b.CompleteByHand(w.ctx, 2, muster.User, "")))
		w.write("meta", fmt.Sprintf(`{"edges": 1, "adding": [{"n": 1, "id": %d, "on": [1]}]}`, id))
		must(w, 0, b.Settle(w.ctx))
		if m := w.raw("meta"); m["adding"] != nil || len(w.get(b, 2).DependsOn) != 0 {
			t.Errorf("%v, %+v", m, w.get(b, 2))
		}
	}
}

// Tasks that cannot be read, or are not there, close no cycle. An announced edge to one that cannot be read counts.
func TestEdgesToWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b := w.board()
		w.add(b, "1")
		w.write("2", `{"id": 2, "subject": "waits for a bad one", "dependsOn": [3]}`)
		w.write("3", `{"id": 3, "subject": []}`)
		w.write("4", `{"id": 4, "subject": "waits for none", "dependsOn": [90]}`)
		w.write("5", `{"id": 5, "subject": "is to wait"}`)
		got, err := b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{2, 4}})
		if must(w, got, err); !slices.Equal(got.BlockedBy, []muster.TaskID{2, 4}) {
			t.Errorf("%+v", got)
		}
		w.write("meta", `{"edges": 9, "adding": [{"n": 9, "id": 5, "on": [3]}]}`)
		must(w, 0, b.Settle(w.ctx))
		if got := w.get(b, 5); !slices.Equal(got.BlockedBy, []muster.TaskID{3}) {
			t.Errorf("%+v", got)
		}
	})
}
