package landing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

// A git that fails never makes work look landed, and loses none: whoever lands again lands it.
func TestAFailedGitLandsNothing(t *testing.T) {
	w := newWorld(t, "", map[string]string{"a": "a\n"})
	n := 0
	gittest.FailEach(t, func(t *testing.T, failing gittest.Failing) {
		w.t = t
		w.process("ls b-*") // a process that does not know yet what git has answered
		n++
		file := fmt.Sprint("b-", n)
		task, _ := w.task("one", "ann", map[string]string{file: "b\n"})
		tip := w.git("rev-parse", target)
		if err := failing(func() error { _, err := w.try(task); return err }); err != nil {
			if now, getErr := w.board.Get(w.ctx(), task.ID); getErr != nil || now.Owner != "ann" || now.Fence != task.Fence || errors.Is(err, muster.ErrFenced) {
				t.Errorf("the task is %+v, %v; its owner is told: %v", now, getErr, err)
			}
			w.lands(task)
		}
		if w.show(file) != "b" || w.git("rev-parse", target+"^") != tip {
			t.Error("the work has not landed, or twice")
		}
		w.noRefs()
		if now, err := w.board.Get(w.ctx(), task.ID); err != nil || now.Status != muster.Completed || now.Landed == nil {
			t.Errorf("the task is %+v, %v", now, err)
		}
	})
}

// Whatever git fails, an owner whose claim is over is refused, and its work is in its lane or kept aside.
func TestAFailedGitKeepsTheWorkOfALateOwner(t *testing.T) {
	gittest.FailEach(t, func(t *testing.T, failing gittest.Failing) {
		w := newWorld(t, "true", map[string]string{"a": "a\n"})
		task, lane := w.task("one", "ann", map[string]string{"b": "b\n"})
		err := failing(func() error { return w.land.Revoke(w.ctx(), task.ID, task.Fence) })
		if err != nil {
			w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence))
		}
		if w.git("for-each-ref", "refs/muster/revoked") == "" {
			t.Error("there is no error, and the claim is not revoked")
		}
		if _, err := w.board.Revoke(w.ctx(), task.ID, task.Fence, muster.Lead, "late"); err != nil {
			t.Fatal(err)
		}
		wants(t, fault(w.try(task)), muster.ErrFenced, "")
		equal(t, "the lane is not as it was", gittest.Read(t, lane, "b"), "b\n")
	})
}

// Whatever git fails, a branch that is ahead stays where it is.
func TestAFailedGitLeavesABranchThatIsAhead(t *testing.T) {
	root, repo := branches(t)
	refs := gittest.Git(t, root, "for-each-ref")
	gittest.FailEach(t, func(t *testing.T, failing gittest.Failing) {
		err := failing(func() error { _, err := landing.PrepareTarget(t.Context(), repo, "ahead", false, false); return err })
		if errors.Is(err, muster.ErrInvalid) && !strings.Contains(err.Error(), "cannot be the name of a branch") {
			t.Errorf("what git could not tell is %v", err)
		}
		if now := gittest.Git(t, root, "for-each-ref"); now != refs {
			t.Errorf("%v, the refs are %s", err, now)
		}
	})
}

// Where the work of an earlier run starts again at HEAD, it is kept aside, or nothing has moved.
func TestAFailedGitLeavesTheTarget(t *testing.T) {
	gittest.FailEach(t, func(t *testing.T, failing gittest.Failing) {
		w := newWorld(t, "true", map[string]string{"a": "a\n"})
		task, _ := w.task("one", "ann", map[string]string{"b": "b\n"})
		w.lands(task)
		tip := w.git("rev-parse", target)
		prepare := func() error {
			_, err := landing.PrepareTarget(w.ctx(), w.repo, "muster/demo", false, true)
			return err
		}
		if err := failing(prepare); err != nil {
			w.must(prepare())
		}
		if now, head := w.git("rev-parse", target), w.git("rev-parse", "HEAD"); now != head {
			t.Errorf("the target is at %s, HEAD at %s", now, head)
		}
		if kept := w.git("for-each-ref", "--format=%(objectname)", "refs/muster/archive/muster-demo-*"); kept != tip {
			t.Errorf("kept is %q, want %s", kept, tip)
		}
	})
}
