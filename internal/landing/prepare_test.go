package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// branches is a repository with branches that stand differently to HEAD, which is at main.
func branches(t *testing.T) (root string, repo *git.Repo) {
	t.Helper()
	root = gittest.Repo(t, map[string]string{"a": "1\n", "b": "1\n"})
	commit := func(branch, from string, files map[string]string, removed ...string) {
		gittest.Git(t, root, "switch", "-q", "-c", branch, from)
		gittest.Write(t, root, files)
		for _, name := range removed {
			gittest.Git(t, root, "rm", "-q", name)
		}
		gittest.Git(t, root, "add", "-A")
		gittest.Git(t, root, "commit", "-q", "-m", "of "+branch)
	}
	gittest.Git(t, root, "branch", "behind")
	commit("taken", "main", map[string]string{"a": "2\n"})
	commit("removed", "main", nil, "a")
	commit("head", "main", map[string]string{"a": "2\n"}, "b")
	commit("ahead", "head", map[string]string{"c": "1\n"})
	gittest.Git(t, root, "switch", "-q", "head")
	gittest.Git(t, root, "branch", "Same")
	gittest.Git(t, root, "symbolic-ref", "refs/heads/alias", "refs/heads/behind")
	gittest.Git(t, root, "update-ref", "refs/heads/unrelated", gittest.Git(t, root, "commit-tree", "-m", "other", "HEAD^{tree}"))
	gittest.Git(t, root, "worktree", "add", "-q", "--detach", root+"-linked")
	repo, err := git.Open(t.Context(), root)
	require.NoError(t, err)
	return root, repo
}

// What a branch is found to be that stays where it is, and what is said of it.
func TestPrepareTargetSaysHowABranchStands(t *testing.T) {
	t.Parallel()
	root, repo := branches(t)
	at := func(ref string) string { return gittest.Git(t, root, "rev-parse", ref) }
	for _, c := range []struct {
		branch string
		named  bool
		note   string // "" is none
		code   *muster.Error
	}{
		{"refs/heads/behind", true, "behind lacks 1 commit of HEAD: lanes are made from it as it is", nil},
		{"ahead", true, "", nil},
		{"unrelated", false, "have diverged", muster.ErrInvalid},
		{"removed", false, "have diverged", muster.ErrInvalid}, // its merge conflicts, and leaves HEAD's files
	} {
		branch := strings.TrimPrefix(c.branch, "refs/heads/")
		was := at(branch)
		note, err := landing.PrepareTarget(t.Context(), repo, c.branch, c.named, false)
		if c.code != nil {
			wants(t, err, c.code, branch+" and HEAD "+c.note)
		} else if err != nil || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %q, %v", c.branch, note, err)
		}
		equal(t, c.branch+" is at", at(branch), was)
	}
	equal(t, "made", gittest.Git(t, root, "branch", "--list", "refs/*"), "")
	wants(t, fault(landing.PrepareTarget(t.Context(), repo, "alias", true, false)), muster.ErrInvalid, "symbolic ref")
	for _, c := range []struct {
		branch       string
		named, fresh bool
		want         string
	}{
		{"behind", false, false, "HEAD"}, {"behind", true, false, "behind"}, {"ahead", false, false, "ahead"},
		{"ahead", false, true, "HEAD"}, {"unrelated", false, false, "HEAD"}, {"none", true, false, "HEAD"},
	} {
		tip, err := landing.PlannedTip(t.Context(), repo, "refs/heads/"+c.branch, c.named, c.fresh)
		require.NoError(t, err)
		equal(t, fmt.Sprintf("the tip of %+v", c), tip, at(c.want))
	}
}

// A branch that another program moves meanwhile is left where that one put it.
func TestPrepareTargetOfABranchThatMoves(t *testing.T) {
	root, repo := branches(t)
	oddGit(t, "*' update-ref '*", 1, "git --git-dir='"+root+"/.git' branch -qf behind taken")
	_, err := landing.PrepareTarget(t.Context(), repo, "behind", false, false)
	wants(t, err, muster.ErrHeld, "behind has just been moved by somebody else")
	equal(t, "it was moved", gittest.Git(t, root, "rev-parse", "behind"), gittest.Git(t, root, "rev-parse", "taken"))
}

// The end of the context is what the caller is told, wherever it comes.
func TestPrepareTargetIsGivenUp(t *testing.T) {
	root, repo := branches(t)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := landing.PrepareTarget(ended, repo, "Same", false, false)
	if !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrInvalid) {
		t.Errorf("at the name: %v", err)
	}
	gittest.Git(t, root, "update-ref", "refs/heads/muster/demo", "HEAD")
	lock := root + "/.git/refs/heads/muster/demo.lock"
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	is(t, "at the lock", fault(landing.PrepareTarget(ended, repo, "muster/demo", false, false)), context.Canceled)
}

// A user whose HEAD has no commit gets an error, and refs that cannot be synced are not called moved.
func TestPrepareTargetNeedsACommitAndADisk(t *testing.T) {
	t.Parallel()
	root, repo := branches(t)
	gittest.Git(t, root, "symbolic-ref", "HEAD", "refs/heads/unborn")
	wants(t, fault(landing.PrepareTarget(t.Context(), repo, "behind", false, false)), muster.ErrNotFound, "HEAD")
	gittest.Git(t, root, "symbolic-ref", "HEAD", "refs/heads/head")
	require.NoError(t, os.Symlink("reftable", root+"/.git/reftable"))
	_, err := landing.PrepareTarget(t.Context(), repo, "behind", false, false)
	wants(t, err, muster.ErrUnavailable, "cannot be synced")
}

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
	require.NoError(t, err)
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

// A revert takes back several commits, whatever their order in the call, and a merge commit with all that it brought. It
// moves nothing.
func TestRevert(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
	commit := func(files map[string]string, message string) string {
		gittest.Write(t, root, files)
		gittest.Git(t, root, "add", "-A")
		gittest.Git(t, root, "commit", "-qm", message)
		return gittest.Git(t, root, "rev-parse", "HEAD")
	}
	first := commit(map[string]string{"a": "2\n"}, "first")
	second := commit(map[string]string{"a": "3\n"}, "second")
	gittest.Git(t, root, "switch", "-q", "-c", "side")
	commit(map[string]string{"b": "2\n"}, "one of two")
	commit(map[string]string{"new": "new\n"}, "two of two")
	gittest.Git(t, root, "switch", "-q", "main")
	gittest.Git(t, root, "merge", "-q", "--no-ff", "-m", "merged", "side")
	merged := gittest.Git(t, root, "rev-parse", "HEAD")
	tip := commit(map[string]string{"c": "2\n"}, "last")
	before := gittest.Checkout(t, root)
	repo, err := git.Open(t.Context(), root)
	require.NoError(t, err)

	got, err := landing.Revert(t.Context(), repo, tip, []string{first, merged, second}, "back\n")
	require.NoError(t, err)
	for file, want := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		equal(t, file, gittest.Git(t, root, "show", got+":"+file), want)
	}
	_, err = gittest.Try(root, "cat-file", "-e", got+":new")
	equal(t, "what the merge brought is still there", err == nil, false)
	equal(t, "its parents", gittest.Git(t, root, "rev-parse", got+"^@"), tip)

	_, err = landing.Revert(t.Context(), repo, tip, []string{first}, "back\n")
	conflict, ok := errors.AsType[*landing.RevertConflict](err)
	if !ok || conflict.Commit != first || !slices.Equal(conflict.Files, []string{"a"}) ||
		!slices.Equal(conflict.Later, []string{second}) {
		t.Errorf("the conflict is %+v, %v", conflict, err)
	}
	once, err := landing.Revert(t.Context(), repo, tip, []string{tip}, "back\n")
	require.NoError(t, err)
	_, err = landing.Revert(t.Context(), repo, once, []string{tip}, "back\n")
	wants(t, err, muster.ErrInvalid, "taken back already")
	_, err = landing.Revert(t.Context(), repo, first, []string{tip}, "back\n")
	wants(t, err, muster.ErrNotFound, "is not on the target")
	equal(t, "the checkout", gittest.Checkout(t, root), before)
}
