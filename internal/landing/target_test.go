package landing_test

import (
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

func TestPrepareTarget(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "1\n2\n3\n"})
	run := func(args ...string) string { return gittest.Git(t, root, args...) }
	commit := func(name string, files map[string]string) string {
		gittest.Write(t, root, files)
		run("add", "-A")
		run("commit", "-q", "-m", name)
		return run("rev-parse", "HEAD")
	}
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(branch string, named, fresh bool) (string, error) {
		t.Helper()
		before := gittest.Checkout(t, root)
		note, err := landing.PrepareTarget(t.Context(), repo, branch, named, fresh)
		if gittest.Checkout(t, root) != before {
			t.Error("the user's checkout has changed")
		}
		return note, err
	}
	at := func(want, says string) {
		t.Helper()
		note, err := prepare("muster/demo", false, false)
		if err != nil || !strings.Contains(note, says) || (says == "") != (note == "") {
			t.Fatalf("note %q, %v; want %q", note, err, says)
		}
		if got := run("rev-parse", "refs/heads/muster/demo"); got != want {
			t.Fatalf("at %s, want %s", got, want)
		}
	}
	first := run("rev-parse", "HEAD")
	at(first, "new branch muster/demo")
	at(first, "")
	second := commit("two", map[string]string{"b": "b\n"})
	at(second, "moved forward")
	// The team has landed two commits, the user has not taken them.
	run("switch", "-q", "muster/demo")
	commit("landed one", map[string]string{"c": "c\n"})
	landed := commit("landed two", map[string]string{"d": "d\n"})
	_, err = prepare("muster/demo", false, false)
	wants(t, err, muster.ErrHeld, "is checked out at "+root)
	run("switch", "-q", "main")
	at(landed, "has 2 commits that HEAD lacks")
	// The user takes them by squash.
	run("merge", "-q", "--squash", "muster/demo")
	run("commit", "-q", "-m", "taken")
	third := commit("and more", map[string]string{"e": "e\n"})
	at(third, "HEAD has all of its work")
	if run("rev-parse", "refs/muster/archive/muster-demo-1") != landed {
		t.Error("what it was is not archived")
	}
	// Truly diverged.
	run("switch", "-q", "muster/demo")
	theirs := commit("landed three", map[string]string{"f": "f\n"})
	run("switch", "-q", "main")
	mine := commit("mine", map[string]string{"g": "g\n"})
	_, err = prepare("muster/demo", false, false)
	wants(t, err, muster.ErrInvalid, "diverged")
	var e *muster.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "git merge muster/demo") || !strings.Contains(e.Hint, "--fresh") || !strings.Contains(e.Hint, "--land") {
		t.Errorf("hint %v", e)
	}
	if run("rev-parse", "muster/demo") != theirs {
		t.Error("it was moved")
	}
	if note, err := prepare("muster/demo", false, true); err != nil || !strings.Contains(note, "fresh") || run("rev-parse", "muster/demo") != mine || run("rev-parse", "refs/muster/archive/muster-demo-2") != theirs {
		t.Errorf("fresh: %q, %v", note, err)
	}
	// A branch of the user's own is used as it is.
	run("branch", "release", first)
	if note, err := prepare("release", true, false); err != nil || !strings.Contains(note, "lacks") || run("rev-parse", "release") != first {
		t.Errorf("named: %q, %v", note, err)
	}
	if note, err := prepare("brand-new", true, false); err != nil || !strings.Contains(note, "new branch") {
		t.Errorf("named and new: %q, %v", note, err)
	}
	_, err = prepare("main", true, false)
	wants(t, err, muster.ErrHeld, "main is checked out at "+root)
	_, err = prepare("release", true, true)
	wants(t, err, muster.ErrInvalid, "--fresh")
	for _, name := range []string{"bad..name", "-x", "--all", "@{-1}", "HEAD", "a b", ""} {
		_, err = prepare(name, true, false)
		wants(t, err, muster.ErrInvalid, "cannot be the name of a branch")
	}
	// A branch whose name is in the way.
	run("branch", "muster2")
	_, err = prepare("muster2/team", false, false)
	wants(t, err, muster.ErrHeld, "in its way")
}
