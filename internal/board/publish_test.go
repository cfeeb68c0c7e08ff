package board

import (
	"strings"
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
	for _, bad := range []muster.PublishedCheck{{}, {Name: "a b"}, {Name: "-a"}, {Name: strings.Repeat("a", 41)},
		{Name: "x", Command: strings.Repeat("x", 501)}} {
		w.refused(errOf(Publish(w.ctx, b, 1, one.Fence, bad)), muster.Invalid, "")
	}
	check.Command = "make api"
	if one, err = Publish(w.ctx, b, 1, one.Fence, check); len(must(w, one, err).Checks) != 1 || one.Checks[0] != check {
		t.Errorf("replaced, there are %+v", one.Checks)
	}
	if e := w.events(journal.TaskUpdated); len(e) != 2 || e[1].Member != "alice" {
		t.Errorf("told: %+v", e)
	}
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
	w.refused(errOf(Retire(w.ctx, b, 1, "none", muster.User)), muster.NotFound, `task 1 has published no check "none"`)
	for _, name := range []string{"api", "b", strings.Repeat("c", 40)} {
		c := muster.PublishedCheck{Name: name, Command: strings.Repeat("x", 500)}
		must(w, two, errOf(Publish(w.ctx, b, 2, two.Fence, c)))
	}
	w.refused(errOf(Publish(w.ctx, b, 2, two.Fence, muster.PublishedCheck{Name: "d", Command: "true"})), muster.Invalid, "")
	if two, err = Publish(w.ctx, b, 2, two.Fence, muster.PublishedCheck{Name: "b"}); len(must(w, two, err).Checks) != 2 {
		t.Errorf("one was taken back, and there are %+v", two.Checks)
	}
	must(w, two, errOf(b.CompleteByHand(w.ctx, 2, muster.User, ""))) // which lands nothing
	counts(0)
}
