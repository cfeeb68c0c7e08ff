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
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// with runs work while each git whose arguments match the pattern of the shell does something else first: it runs a
// script, in which $git is the real one. Its test cannot be parallel.
func (w *world) with(pattern, script string, work func() error) error {
	w.t.Helper()
	git, err := exec.LookPath("git")
	require.NoError(w.t, err)
	dir, path := w.t.TempDir(), os.Getenv("PATH")
	gittest.Write(w.t, dir, map[string]string{"git": fmt.Sprintf(
		"#!/bin/sh\ngit='%s'\ncase \"$*\" in\n*'%s'*) touch '%s/asked'; %s;;\nesac\nexec \"$git\" \"$@\"\n",
		git, pattern, dir, script)})
	require.NoError(w.t, os.Chmod(filepath.Join(dir, "git"), 0o700))
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

// A process that is killed just after it has moved the branch of a lane has not told the lane's git of it.
func TestAMergeAfterACommitThatWasCutOff(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	base := w.git(w.root, "rev-parse", "HEAD")
	w.create("one", map[string]string{"b": "b\n"})
	head, _, err := w.Commit(w.ctx(), "one", "work")
	require.NoError(t, err)
	place := filepath.Join(w.root, ".git", "muster", "places", ".worktrees", "one")
	for _, file := range []string{"copied.json", "git/refs/heads/wt/one"} {
		data := require.Value(os.ReadFile(filepath.Join(place, file)))(t)
		if !strings.Contains(string(data), head) {
			t.Fatalf("%s has no %s: %s", file, head, data)
		}
		gittest.Write(t, place, map[string]string{file: strings.ReplaceAll(string(data), head, base)})
	}
	gittest.Write(t, w.root, map[string]string{"c": "c\n"})
	w.git(w.root, "add", "c")
	w.git(w.root, "commit", "-q", "-m", "others")
	if _, err := w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "HEAD")); err != nil {
		t.Error(err)
	}
}

// A branch that goes while its lane is staged is an error of the call.
func TestABranchThatGoesMeanwhile(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	w.create("one", map[string]string{"b": "b\n"})
	err := w.with("write-tree", "rm '"+w.root+"/.git/refs/heads/wt/one'", func() error {
		_, _, err := w.Commit(w.ctx(), "one", "work")
		return err
	})
	if !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// The end of a call in the middle of a merge, of an archive or of a checkout is told as what it is, and removes nothing.
func TestACallThatEndsInTheMiddle(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	head := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", head)
	require.NoError(t, err)
	w.conflict()
	main := w.git(w.root, "rev-parse", "main")
	for _, c := range []struct { // the lane that is to be removed comes last
		pattern string
		work    func(ctx context.Context) error
	}{
		{"merge -q", func(ctx context.Context) error { _, err := w.Merge(ctx, "one", main); return err }},
		{"checkout -q", func(ctx context.Context) error { _, err := w.Scratch(ctx, "alice", main); return err }},
		{"worktree add", func(ctx context.Context) error { _, err := w.Create(ctx, "two", 0, ""); return err }},
		{"ls-files -z -v", func(ctx context.Context) error { _, err := w.Archive(ctx, "one"); return err }},
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
	const both = "worktree.create.before one worktree.create.failed one"
	equal(t, "events", fmt.Sprint(w.events()), "["+both+" "+both+"]")
}

// A git that was killed is worth another try, and the end of a call is no failure of git.
func TestACommitWhoseGitDies(t *testing.T) {
	w := newWorld(t, nil)
	w.create("one", map[string]string{"a": "a\n"})
	commit := func() error { _, _, err := w.Commit(w.ctx(), "one", "x"); return err }
	wants(t, w.with("--others", "kill -9 $$", commit), muster.ErrUnavailable, "cannot be committed")
	wants(t, w.with("--others", "exit 1", commit), muster.ErrInvalid, "cannot be committed")
	err := w.cancelledAt("--others", func(ctx context.Context) error { _, _, err := w.Commit(ctx, "one", "x"); return err })
	if !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrInvalid) {
		t.Errorf("cancelled: %v", err)
	}
}

// A git that fails never makes a step of a lane look done, and the step can be repeated.
func TestAFailedGitIsNoSuccess(t *testing.T) {
	for name, act := range map[string]func(w *world, failing gittest.Failing){
		"create": (*world).failCreate, "commit": (*world).failCommit, "finish": (*world).failFinish,
		"remove": (*world).failRemove, "look": (*world).failLook, "merge": (*world).failMerge,
	} {
		t.Run(name, func(t *testing.T) {
			gittest.FailEach(t, func(t *testing.T, failing gittest.Failing) {
				w := newWorld(t, map[string]string{"a": "a\n", ".gitignore": "*.log\n"})
				lane := w.create("one", map[string]string{"c": "c\n"})
				w.ok2(w.Commit(w.ctx(), "one", "second"))
				gittest.Write(t, lane.Path, map[string]string{"b": "b\n", "x.log": "x\n"})
				act(w, failing)
			})
		})
	}
}

// whole fails the test unless work succeeds, at the latest when it is repeated after git has failed, and its outcome is
// right.
func (w *world) whole(failing gittest.Failing, work func() error, isRight func() bool) {
	w.t.Helper()
	if err := failing(work); err != nil {
		if err = work(); err != nil {
			w.t.Fatalf("the second time: %v", err)
		}
	}
	if !isRight() {
		w.t.Error("there is no error, and the outcome is wrong")
	}
}

// has reports whether a revision has all that was written into the lane.
func (w *world) has(rev string) bool {
	w.t.Helper()
	return w.git(w.root, "show", rev+":b") == "b" && w.git(w.root, "show", rev+":c") == "c"
}

func (w *world) failCreate(failing gittest.Failing) {
	var two muster.Lane
	w.whole(failing, func() (err error) {
		two, err = w.Create(w.ctx(), "two", 2, "HEAD")
		return err
	}, func() bool { return gittest.Read(w.t, two.Path, "a") == "a\n" && two.Status == muster.LaneActive })
}

func (w *world) failCommit(failing gittest.Failing) {
	head := ""
	w.whole(failing, func() (err error) {
		head, _, err = w.Commit(w.ctx(), "one", "work")
		return err
	}, func() bool { return w.has(head) })
}

func (w *world) failFinish(failing gittest.Failing) {
	w.whole(failing, func() error {
		_, err := w.ArchiveCompleted(w.ctx(), muster.Task{ID: 1, Fence: 1, Worktree: "one", Status: muster.Completed})
		return err
	}, func() bool {
		w.tidy()
		return w.has("refs/muster/archive/one-1")
	})
}

func (w *world) failRemove(failing gittest.Failing) {
	w.whole(failing, func() error {
		err := w.Remove(w.ctx(), "one", false)
		if errors.Is(err, muster.ErrHeld) { // as it must be
			return nil
		}
		return errors.Join(err, errors.New("it was not seen that the lane holds work"))
	}, func() bool { return gittest.Read(w.t, w.root, ".worktrees/one/b") == "b\n" })
}

func (w *world) failLook(failing gittest.Failing) {
	var isChanged bool
	var ignored []string
	var status string
	w.whole(failing, func() (err error) {
		if isChanged, err = w.Changed(w.ctx(), "one"); err != nil {
			return err
		}
		if ignored, err = w.Ignored(w.ctx(), "one"); err != nil {
			return err
		}
		if found, err := w.Check(w.ctx()); err != nil || len(found) > 0 {
			return errors.Join(err, errors.New("something is wrong"))
		}
		if status, err = w.Status(w.ctx(), "one"); err != nil {
			return err
		}
		return w.Recover(w.ctx())
	}, func() bool {
		return isChanged && slices.Equal(ignored, []string{"x.log"}) && strings.Contains(status, "?? b") &&
			strings.Contains(status, "second") && strings.Contains(status, "wt/one")
	})
}

func (w *world) failMerge(failing gittest.Failing) {
	w.ok2(w.Commit(w.ctx(), "one", "work"))
	w.land(map[string]string{"c": "\x00theirs\n"}) // no marker tells of the conflict
	theirs := w.git(w.root, "rev-parse", "HEAD")
	var conflicts []string
	var open []worktree.Conflict
	w.whole(failing, func() (err error) {
		if conflicts, err = w.Merge(w.ctx(), "one", theirs); err == nil {
			open, err = w.Unresolved(w.ctx(), "one")
		}
		return err
	}, func() bool {
		return slices.Equal(conflicts, []string{"c"}) && len(open) == 1 &&
			w.git(w.root+"/.worktrees/one", "rev-parse", "MERGE_HEAD") == theirs
	})
}
