package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

// with runs work while each git whose arguments match the pattern of the shell does something else first: it runs a
// script, in which $git is the real one. Its test cannot be parallel.
func (w *world) with(pattern, script string, work func() error) error {
	w.t.Helper()
	git, err := exec.LookPath("git")
	check(w.t, err)
	dir, path := w.t.TempDir(), os.Getenv("PATH")
	gittest.Write(w.t, dir, map[string]string{"git": fmt.Sprintf(
		"#!/bin/sh\ngit='%s'\ncase \"$*\" in\n*'%s'*) touch '%s/asked'; %s;;\nesac\nexec \"$git\" \"$@\"\n",
		git, pattern, dir, script)})
	check(w.t, os.Chmod(filepath.Join(dir, "git"), 0o700))
	w.t.Setenv("PATH", dir+string(os.PathListSeparator)+path)
	err = work()
	w.t.Setenv("PATH", path)
	if _, missing := os.Stat(filepath.Join(dir, "asked")); missing != nil {
		w.t.Errorf("git was never asked for %s", pattern)
	}
	return err
}

// cancelledAt is with for a call whose context ends while such a git runs.
func (w *world) cancelledAt(pattern string, work func(ctx context.Context) error) error {
	w.t.Helper()
	ctx, stop := signal.NotifyContext(w.ctx(), os.Interrupt)
	defer stop()
	return w.with(pattern, "kill -INT $PPID; exec sleep 10", func() error { return work(ctx) })
}

// The end of a call in the middle of a merge, of a removal or of a checkout is told as what it is, and removes nothing.
func TestACallThatEndsInTheMiddle(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	head := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", head)
	check(t, err)
	w.conflict()
	main := w.git(w.root, "rev-parse", "main")
	for _, c := range []struct { // the lane that is to be removed comes last: nobody can work in it any more
		pattern string
		work    func(ctx context.Context) error
	}{
		{"merge -q", func(ctx context.Context) error { _, err := w.Merge(ctx, "one", main); return err }},
		{"checkout -q", func(ctx context.Context) error { _, err := w.Scratch(ctx, "alice", main); return err }},
		{"worktree add", func(ctx context.Context) error { _, err := w.Create(ctx, "two", 0, ""); return err }},
		{"worktree remove", func(ctx context.Context) error { _, err := w.Archive(ctx, "one"); return err }},
	} {
		err := w.cancelledAt(c.pattern, c.work)
		if !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s: %v", c.pattern, err)
		}
	}
	if aside, _ := filepath.Glob(dir + ".aside-*"); len(aside) > 0 {
		t.Errorf("moved aside: %v", aside)
	}
	if lane, err := w.Get(w.ctx(), "one"); err != nil || w.git(w.root, "rev-parse", "wt/one") == head {
		t.Errorf("the lane is %+v, %v", lane, err)
	}
	if lane, err := w.Get(w.ctx(), "two"); err == nil {
		t.Errorf("the lane is %+v", lane)
	}
}

// The branch of a lane that is being removed is deleted only where its commits are archived: those that nobody has
// archived yet, and those that it gets in the last instant.
func TestARemovalArchivesWhatTheBranchHas(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	commit := func(parent, message string) string {
		return w.git(w.root, "commit-tree", "-p", parent, "-m", message, "HEAD^{tree}")
	}
	first := commit("HEAD", "first")
	second := commit(first, "second")
	removing := func(ref string) {
		w.git(w.root, "branch", "-f", "wt/one", first)
		w.rows(w.row("one", muster.LaneActive, `,"removing":{"ref":"`+ref+`"}`))
	}
	archive := func() error { _, err := w.Archive(w.ctx(), "one"); return err }
	archived := func(commit string) bool {
		return strings.HasPrefix(w.git(w.root, "for-each-ref", "--format=%(refname)", "--points-at", commit), "refs/muster/archive/one-")
	}
	for _, pattern := range []string{"pack-objects", "merge-base"} { // what cannot be archived, or be told, stays
		ref := ""
		if pattern == "merge-base" {
			ref = "refs/muster/archive/one-1"
			w.git(w.root, "update-ref", ref, second)
		}
		removing(ref)
		if err := w.with(pattern, "exit 128", archive); err == nil {
			t.Errorf("git %s has failed, and there is no error", pattern)
		}
		equal(t, "the branch is gone", w.git(w.root, "rev-parse", "wt/one"), first)
		if ref != "" {
			w.git(w.root, "update-ref", "-d", ref)
		}
	}
	removing("")
	if err := archive(); err != nil || !archived(first) {
		t.Errorf("%v: %s is archived nowhere", err, first)
	}
	w.tidy()

	removing("refs/muster/archive/one-1")
	moves := `"$git" -C '` + w.root + `' update-ref refs/heads/wt/one ` + second
	if err := w.with("--is-ancestor "+first, moves, archive); err != nil || !archived(second) {
		t.Errorf("%v: %s is archived nowhere", err, second)
	}
	w.tidy()
}

// A branch that the user makes in the last instant is the user's, and stays.
func TestABranchThatAppearsMeanwhileStays(t *testing.T) {
	w := newWorld(t, nil)
	create := func() error { _, err := w.Create(w.ctx(), "one", 0, ""); return err }
	err := w.with("update-ref", `"$git" -C '`+w.root+`' branch wt/one`, create)
	wants(t, err, muster.ErrHeld, "there is a branch wt/one already")
	equal(t, "branches", w.git(w.root, "branch", "--list", "--format=%(refname:short)", "wt/*"), "wt/one")
	equal(t, "lanes", len(w.must(w.List(w.ctx()))), 0)
	w.git(w.root, "branch", "-D", "wt/one")
	err = w.with("update-ref", `"$git" -C '`+w.root+`' branch wt`, create)
	wants(t, err, muster.ErrInvalid, "your branch wt")
	if got := w.events(); !slices.Equal(got, []string{"worktree.create.before one", "worktree.create.failed one",
		"worktree.create.before one", "worktree.create.failed one"}) {
		t.Errorf("events %v", got)
	}
}
