package board

import (
	"testing"

	"muster"
	"muster/journal"
)

// A published check counts from the landing of its task on, until it is retired, and its name is one task's.
func TestPublish(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.add(b, "two")
	one, two := w.take(b, 1, "alice"), w.take(b, 2, "bob")
	check := muster.PublishedCheck{Name: "api", Command: "go test\n ./api"}
	one, err := Publish(w.ctx, b, 1, one.Fence, check)
	if must(w, one, err).Checks[0].Command != "go test ./api" {
		t.Fatalf("%+v", one.Checks)
	}
	w.refused(errOf(Publish(w.ctx, b, 2, two.Fence, check)), muster.Invalid,
		"task 1 (one) has a check api: choose another name")
	w.refused(errOf(Publish(w.ctx, b, 2, two.Fence-1, muster.PublishedCheck{Name: "x", Command: "true"})), muster.Fenced, "")
	counts := func(want int) {
		t.Helper()
		if all, err := Contracts(w.ctx, b); err != nil || len(all) != want {
			t.Errorf("%v count, %v", all, err)
		}
	}
	counts(0)
	must(w, one, errOf(b.BeginLanding(w.ctx, 1, one.Fence, muster.PendingLanding{Head: "h", Onto: "o"})))
	counts(1)
	must(w, one, errOf(b.Complete(w.ctx, 1, one.Fence, Outcome{Landed: &muster.Landed{Commit: "c"}, By: "alice"})))
	counts(1)
	told := len(w.events(journal.TaskUpdated))
	for range 2 {
		must(w, one, errOf(Retire(w.ctx, b, 1, "api", muster.User)))
	}
	counts(0)
	if n := len(w.events(journal.TaskUpdated)); n != told+1 {
		t.Errorf("a check was retired, and %d events say so", n-told)
	}
	for _, name := range []string{"api", "b", "c"} {
		must(w, two, errOf(Publish(w.ctx, b, 2, two.Fence, muster.PublishedCheck{Name: name, Command: "true"})))
	}
	w.refused(errOf(Publish(w.ctx, b, 2, two.Fence, muster.PublishedCheck{Name: "d", Command: "true"})), muster.Invalid, "")
	if two, err = Publish(w.ctx, b, 2, two.Fence, muster.PublishedCheck{Name: "b"}); len(must(w, two, err).Checks) != 2 {
		t.Errorf("one was taken back, and there are %+v", two.Checks)
	}
}
