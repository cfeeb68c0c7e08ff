package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func open(t *testing.T, dir string) *git.Repo {
	t.Helper()
	return require.Value(git.Open(t.Context(), dir))(t)
}

// returns fails the test unless a call returns what is wanted, and no error.
func returns[T comparable](t testing.TB, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

// equal fails the test unless both are the same.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestOpenFindsTheMainWorktree(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"pkg/deep/a.txt": "a\n"})
	gittest.Git(t, root, "worktree", "add", "-q", "-b", "other", root+"-linked")
	for _, dir := range []string{root, root + "/pkg/deep", root + "-linked", root + "-linked/pkg", root + "/.git"} {
		r := open(t, dir)
		if r.Root() != root || r.CommonDir() != filepath.Join(root, ".git") {
			t.Errorf("from %s: root %s, common %s", dir, r.Root(), r.CommonDir())
		}
	}
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_INDEX_FILE", "/nowhere")
	if r := open(t, root); r.Root() != root {
		t.Errorf("with GIT_DIR set: root %s", r.Root())
	}
}

func TestOpenSaysWhyNot(t *testing.T) {
	gittest.Env(t)
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q", "--bare", "bare")
	gittest.Git(t, dir, "init", "-q", "empty")
	gittest.Git(t, dir, "init", "-q", "broken")
	gittest.Git(t, dir, "init", "-q", "-b", "main", "unborn")
	gittest.Git(t, dir+"/unborn", "commit", "-q", "--allow-empty", "-m", "start")
	gittest.Git(t, dir+"/unborn", "worktree", "add", "-q", "-b", "feature", "../linked")
	gittest.Git(t, dir, "clone", "-q", "--bare", "unborn", "beside/.bare")
	require.NoError(t, os.WriteFile(dir+"/beside/.git", []byte("gitdir: ./.bare\n"), 0o644))
	gittest.Git(t, dir+"/beside", "worktree", "add", "-q", "main")
	gittest.Git(t, dir+"/unborn", "switch", "-q", "--orphan", "new")
	require.NoError(t, os.WriteFile(dir+"/broken/.git/config", []byte("[core"), 0o644))
	require.NoError(t, os.Mkdir(dir+"/plain", 0o755))
	for _, c := range []struct {
		dir, says, hint string
		code            *muster.Error
	}{
		{"bare", "is a bare repository", "git clone", muster.ErrInvalid},
		{"beside", "works in one of its worktrees", "cd " + dir + "/beside/main", muster.ErrInvalid},
		{"empty", "no commit yet", `git commit --allow-empty -m "start"`, muster.ErrInvalid},
		{"unborn", "no commit at HEAD (new)", "git switch BRANCH", muster.ErrInvalid},
		{"plain", "is not in a git repository", "git init", muster.ErrNotFound},
		{"broken", "git cannot read the repository", "", muster.ErrUnavailable},
		{"missing", "there is no directory", "", muster.ErrNotFound},
	} {
		_, err := git.Open(t.Context(), filepath.Join(dir, c.dir))
		e, ok := errors.AsType[*muster.Error](err)
		if !ok || !errors.Is(err, c.code) || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %#v", c.dir, err)
		}
	}
	// What counts is the checkout where one stands.
	_, err := git.Open(t.Context(), filepath.Join(dir, "linked"))
	require.NoError(t, err)
	old := t.TempDir()
	require.NoError(t, os.WriteFile(old+"/git", []byte("#!/bin/sh\necho git version 2.38.9\n"), 0o755))
	t.Setenv("PATH", old+":"+os.Getenv("PATH"))
	if _, err := git.Open(t.Context(), dir); !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "2.38.9 is too old") {
		t.Errorf("old git: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := git.Open(t.Context(), dir); !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("no git: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	root := gittest.Repo(t, nil)
	wants := func(want string) {
		t.Helper()
		name, email := open(t, root).Identity(t.Context())
		if got := name + " <" + email + ">"; got != want {
			t.Errorf("identity %s, want %s", got, want)
		}
	}
	wants("Ann Tester <ann@example.com>")
	t.Setenv("HOME", t.TempDir())
	wants("muster <muster@localhost>")
	gittest.Git(t, root, "config", "user.name", "Bo")
	gittest.Git(t, root, "config", "user.email", "bo@example.com")
	wants("Bo <bo@example.com>")
}

func TestMergeTree(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "b\n"})
	r := open(t, root)
	commit := func(branch string, files map[string]string) string {
		gittest.Git(t, root, "switch", "-q", "-c", branch, "main")
		gittest.Write(t, root, files)
		gittest.Git(t, root, "add", "-A")
		gittest.Git(t, root, "commit", "-q", "-m", branch)
		return gittest.Git(t, root, "rev-parse", "HEAD")
	}
	one := commit("one", map[string]string{"a": "1 one\n2\n3\n4\n5\n"})
	two := commit("two", map[string]string{"a": "1\n2\n3\n4\n5 two\n", "b c\nd": "new\n"})
	three := commit("three", map[string]string{"a": "1 three\n2\n3\n4\n5\n", "b": "three\n", "b c\nd": "other\n"})
	before := gittest.Checkout(t, root)

	tree, conflicts, err := r.MergeTree(t.Context(), one, two)
	if err != nil || len(conflicts) != 0 {
		t.Fatal(conflicts, err)
	}
	equal(t, "merged", gittest.Git(t, root, "cat-file", "-p", tree+":a"), "1 one\n2\n3\n4\n5 two")
	merged, err := r.CommitTree(t.Context(), tree, []string{one, two}, "merged\n")
	require.NoError(t, err)
	equal(t, "commit", gittest.Git(t, root, "log", "-1", "--format=%an %ce %P %s", merged),
		"Ann Tester ann@example.com "+one+" "+two+" merged")
	_, conflicts, err = r.MergeTree(t.Context(), merged, three)
	if err != nil || strings.Join(conflicts, "|") != "a|b c\nd" {
		t.Errorf("conflicts %q, %v", conflicts, err)
	}
	if _, _, err = r.MergeTree(t.Context(), one, "0123456789012345678901234567890123456789"); err == nil {
		t.Error("a commit that is not there was merged")
	}
	equal(t, "merging touched the user's checkout", gittest.Checkout(t, root), before)
}

func TestStatusAncestorsExclude(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	r := open(t, root)
	ctx := t.Context()
	head, err := r.Head(ctx)
	if err != nil || head != gittest.Git(t, root, "rev-parse", "HEAD") {
		t.Fatal(head, err)
	}
	returns(t, "refs/heads/main")(r.CurrentBranch(ctx))
	isDirty := func() (bool, error) { s, err := git.Checkout(ctx, r); return s.Changed > 0, err }
	returns(t, false)(isDirty())
	gittest.Write(t, root, map[string]string{".team/x": "x", ".worktrees/y/z": "z"})
	for range 2 {
		require.NoError(t, r.Exclude(ctx, []string{"/.team/", "/.worktrees/"}))
	}
	if got := gittest.Read(t, root, ".git/info/exclude"); strings.Count(got, "/.team/\n") != 1 || !strings.Contains(got, "git ls-files --others") {
		t.Errorf("exclude: %q", got)
	}
	returns(t, false)(isDirty())
	gittest.Write(t, root, map[string]string{"b": "b\n"})
	returns(t, true)(isDirty())
	gittest.Git(t, root, "commit", "-q", "--allow-empty", "-m", "next")
	next, _ := r.Head(ctx)
	returns(t, true)(r.IsAncestor(ctx, head, next))
	returns(t, false)(r.IsAncestor(ctx, next, head))
	gittest.Git(t, root, "checkout", "-q", "--detach")
	returns(t, "")(r.CurrentBranch(ctx))
	for rev, want := range map[string]*muster.Error{"nope": muster.ErrNotFound, "-x": muster.ErrInvalid, "": muster.ErrInvalid} {
		if _, err := r.Resolve(ctx, rev); !errors.Is(err, want) {
			t.Errorf("%q: %v", rev, err)
		}
	}
}

func TestTheEndOfTheContextEndsGit(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	started := make(chan struct{})
	ended := make(chan error)
	go func() {
		close(started)
		_, err := r.Run(ctx, root, "-c", "alias.wait=!sleep 60", "wait")
		ended <- err
	}()
	<-started
	cancel(why)
	select {
	case err := <-ended:
		if !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("git goes on")
	}
}

// TestMain lets the test binary be the process that is killed while it packs.
func TestMain(m *testing.M) {
	if root := os.Getenv("PACKS_TO_KILL"); root != "" {
		packUntilKilled(root)
		return
	}
	gittest.Main(m)
}
