package board

import (
	"context"
	"errors"
	"testing"

	"muster"
	"muster/journal"
	"muster/store/storetest"
)

// Deleting without force is refused while an unfinished task waits, and only then.
func TestDeletingWhatOnlyFinishedTasksWaitedFor(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.write("1", `{"id": 1, "subject": "a", "status": "completed", "completed_by": "zoe", "owner": "zoe"}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "completed", "completed_by": "zoe", "dependsOn": [1]}`)
	w.write("3", `{"id": 3, "subject": "itself", "dependsOn": [3]}`)
	for id := muster.TaskID(1); id <= 3; id++ {
		must(w, 0, b.Delete(w.ctx, id, false))
	}
	if left := w.stored(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// errNoGit is the error of a revocation.
var errNoGit = errors.New("git is gone")

// A task that is landing is deleted only after its landing was revoked, and not where nobody can do that.
func TestDeletingATaskThatIsLanding(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.add(b, "two", 1)
	w.add(b, "three", 1)
	w.take(b, 1, "ann")
	must(w, 0, errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
	w.refused(b.Delete(w.ctx, 1, true), muster.Held, "task 1 is being landed for ann right now")
	w.refused(errOf(b.CompleteByHand(w.ctx, 1, muster.User, "")), muster.Held, "task 1 is being landed for ann right now")
	var revoked []muster.Task
	for _, want := range []error{errNoGit, nil} {
		b.OnRevoke(func(_ context.Context, t muster.Task) error {
			revoked = append(revoked, t)
			return want
		})
		if err := b.Delete(w.ctx, 1, true); !errors.Is(err, want) {
			t.Errorf("deleted with %v, want %v", err, want)
		}
		if _, there := w.stored()[1]; there != (want != nil) {
			t.Errorf("with %v it is there: %v", want, there)
		}
	}
	if len(revoked) != 2 || revoked[1].Fence != 1 {
		t.Errorf("revoked were %+v", revoked)
	}
	for _, id := range []muster.TaskID{2, 3} {
		if got := w.get(b, id); len(got.DependsOn) != 0 {
			t.Errorf("%+v", got)
		}
	}
	if e := w.events(journal.TaskEdgeRemoved); len(e) != 2 || e[0].Number("blocker") != 1 || e[1].Number("blocker") != 1 {
		t.Errorf("%+v", e)
	}
}

// A dependant that is deleted at the same time keeps no other one waiting.
func TestADependantIsDeletedAtTheSameTime(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	for id := range muster.TaskID(3) {
		w.add(other, "x", []muster.TaskID{1}[:min(id, 1)]...)
	}
	b := w.interruptedBoard(at("put", "2"), func() { must(w, 0, other.Delete(w.ctx, 2, true)) })
	must(w, 0, b.Delete(w.ctx, 1, true))
	if left := w.stored(); len(left) != 1 || len(left[3].DependsOn) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// A task that changes while it is being deleted is looked at anew.
func TestATaskChangesWhileItIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		force, lands bool
		want         error
	}{
		"held": {false, false, muster.ErrHeld}, "landing": {true, true, muster.ErrHeld}, "forced": {true, false, nil},
	} {
		w := inMemory(t)
		other := w.board()
		w.add(other, "one")
		b := w.interruptedBoard(at("delete", "1"), func() {
			if w.take(other, 1, "ann"); c.lands {
				must(w, 0, errOf(other.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
			}
		})
		err := b.Delete(w.ctx, 1, c.force)
		if _, there := w.stored()[1]; !errors.Is(err, c.want) || there == (c.want == nil) {
			t.Errorf("%s: %v, and it is there: %v", name, err, there)
		}
	}
}

// Who finds its id taken looks again. When it cannot, that is its error.
func TestAnIDThatIsTakenIsLookedForAgain(t *testing.T) {
	isList := func(op string) bool { return op == "list tasks" }
	storetest.FailEach(t, isList, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		w := inMemory(t)
		other, times := w.board(), 2
		s := interrupted{wrap(w.open()), func(op, key string) {
			if _, isTask := idOf(key); op == "put" && isTask && times > 0 {
				times--
				w.add(other, "faster")
			}
		}}
		got, err := New(s, journal.New(s.Log())).Create(w.ctx, Draft{Subject: "new"})
		if err == nil && got.ID != 3 {
			t.Errorf("%+v", got)
		}
		return err
	})
}

// An id that was found taken is not tried again, also while the listing does not show who has it.
func TestATakenIDIsNotTriedAgain(t *testing.T) {
	w := inMemory(t)
	w.add(w.board(), "one")
	w.add(w.board(), "two")
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ops := 0
	s := interrupted{w.open(), func(string, string) {
		if ops++; ops > 30 {
			cancel() // it would go on for ever
		}
	}}
	b := New(s, journal.New(s.Log()))
	must(w, 0, b.tasks.Refresh(ctx))
	b.graph.highest = 0
	if got, err := b.Create(ctx, Draft{Subject: "new"}); must(w, got, err).ID != 3 {
		t.Errorf("%+v", got)
	}
}
