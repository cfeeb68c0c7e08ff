package landing_test

import (
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
	must(t, err)
	prepare := func(branch string, named, fresh bool) (string, error) {
		t.Helper()
		before := gittest.Checkout(t, root)
		note, err := landing.PrepareTarget(t.Context(), repo, branch, named, fresh)
		equal(t, "the user's checkout has changed", gittest.Checkout(t, root), before)
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
	wants(t, fault(prepare("muster/demo", false, false)), muster.ErrHeld, "is checked out at "+root)
	run("switch", "-q", "main")
	at(landed, "has 2 commits that HEAD lacks")
	// The user takes them by squash.
	run("merge", "-q", "--squash", "muster/demo")
	run("commit", "-q", "-m", "taken")
	third := commit("and more", map[string]string{"e": "e\n"})
	at(third, "HEAD has all of its work")
	equal(t, "what it was is not archived", run("rev-parse", "refs/muster/archive/muster-demo-1"), landed)
	// Truly diverged.
	run("switch", "-q", "muster/demo")
	theirs := commit("landed three", map[string]string{"f": "f\n"})
	run("switch", "-q", "main")
	mine := commit("mine", map[string]string{"g": "g\n"})
	_, err = prepare("muster/demo", false, false)
	wants(t, err, muster.ErrInvalid, "diverged")
	says(t, hint(err), "git merge muster/demo", "--fresh", "--land")
	equal(t, "it was moved", run("rev-parse", "muster/demo"), theirs)
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
	wants(t, fault(prepare("main", true, false)), muster.ErrHeld, "main is checked out at "+root)
	wants(t, fault(prepare("release", true, true)), muster.ErrInvalid, "--fresh")
	for _, name := range []string{"bad..name", "-x", "--all", "@{-1}", "HEAD", "a b", ""} {
		wants(t, fault(prepare(name, true, false)), muster.ErrInvalid, "cannot be the name of a branch")
	}
	// A branch whose name is in the way.
	run("branch", "muster2")
	wants(t, fault(prepare("muster2/team", false, false)), muster.ErrHeld, "in its way")
}
