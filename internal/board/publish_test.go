package board

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/tier"
	"muster/journal"
)

// TestPublish checks who may publish which checks, that a name is one task's, and that they count from the landing on.
func TestPublish(t *testing.T) {
	tier.All(t)
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.add(b, "two")
	one, err := b.Claim(w.ctx, 1, Claim{Owner: "alice"})
	must(w, one, err)
	two, err := b.Claim(w.ctx, 2, Claim{Owner: "bob"})
	must(w, two, err)
	check := func(name, command string) muster.PublishedCheck {
		return muster.PublishedCheck{Name: name, Command: command}
	}
	one, err = Publish(w.ctx, b, 1, one.Fence, check("api", "go test\n ./api"))
	if must(w, one, err).Checks[0] != check("api", "go test ./api") {
		t.Fatalf("%+v", one.Checks)
	}
	for _, c := range []struct {
		fence         int
		name, command string
		code          muster.Code
		says          string
	}{
		{two.Fence, "api", "true", muster.Invalid, "task 1 (one) has a check api: choose another name"},
		{two.Fence, "../x", "true", muster.Invalid, `"../x" cannot be the name of a check: up to 40 letters, digits, dots, hyphens`},
		{two.Fence, "", "true", muster.Invalid, `"" cannot be the name of a check: up to 40 letters, digits, dots, hyphens`},
		{two.Fence, "x", strings.Repeat("x", 501), muster.Invalid, "the command has 501 bytes, and a check may have 500: put it into a script"},
		{two.Fence - 1, "x", "true", muster.Fenced, ""},
	} {
		w.refused(errOf(Publish(w.ctx, b, 2, c.fence, check(c.name, c.command))), c.code, c.says)
	}
	for _, name := range []string{"b", "c", "c", "d"} { // the same name replaces
		if one, err = Publish(w.ctx, b, 1, one.Fence, check(name, "true")); name == "d" {
			w.refused(err, muster.Invalid, "task 1 has 3 checks, which is the most")
		} else {
			must(w, one, err)
		}
	}
	one, err = Publish(w.ctx, b, 1, two.Fence, check("b", "")) // taken back
	if must(w, one, err); len(one.Checks) != 2 {
		t.Errorf("%+v", one.Checks)
	}
	count := func() int {
		all, err := Contracts(w.ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if count() != 0 {
		t.Error("a task that is worked on has checks that count")
	}
	must(w, one, errOf(b.BeginLanding(w.ctx, 1, one.Fence, muster.PendingLanding{Head: "h", Onto: "o"})))
	must(w, one, errOf(b.Complete(w.ctx, 1, one.Fence, Outcome{Landed: &muster.Landed{Commit: "c"}, By: "alice"})))
	if count() != 2 {
		t.Errorf("%d checks count", count())
	}
	w.refused(errOf(Retire(w.ctx, b, 1, "none", muster.User)), muster.NotFound, "task 1 has published no check \"none\"")
	for range 2 {
		one, err = Retire(w.ctx, b, 1, "api", muster.User)
		if must(w, one, err); count() != 1 {
			t.Errorf("%+v", one.Checks)
		}
	}
	if two, err = Publish(w.ctx, b, 2, two.Fence, check("api", "true")); err != nil {
		t.Errorf("the name of a retired check is free: %v", err)
	}
	if n := len(w.events(journal.TaskUpdated)); n != 7 {
		t.Errorf("%d events", n)
	}
}
