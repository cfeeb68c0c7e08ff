package worktree_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

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
		if open, err := w.Unresolved(w.ctx(), "one"); err != nil || len(open) > 0 {
			return errors.Join(err, errors.New("there are conflicts"))
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
	w.land(map[string]string{"c": "theirs\n"})
	theirs := w.git(w.root, "rev-parse", "HEAD")
	var conflicts []string
	w.whole(failing, func() (err error) {
		conflicts, err = w.Merge(w.ctx(), "one", theirs)
		return err
	}, func() bool {
		return slices.Equal(conflicts, []string{"c"}) &&
			w.git(w.root+"/.worktrees/one", "rev-parse", "MERGE_HEAD") == theirs
	})
}
