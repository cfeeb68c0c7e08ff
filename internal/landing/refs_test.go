package landing_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
)

// during lands a task with a check that does something else first.
func (w *world) during(t muster.Task, f func()) (landing.Verdict, error) {
	return w.duringIn(w.ctx(), t, f)
}

// duringIn is during with a context for the landing.
func (w *world) duringIn(ctx context.Context, t muster.Task, f func()) (landing.Verdict, error) {
	return w.lander("true", launchAfter(f, launch)).Land(ctx, t.ID, t.Fence, "late work", t.Owner)
}

// launchAfter returns launch, with a call of f before its first one.
func launchAfter(f func(), launch func() (proc.Launcher, error)) func() (proc.Launcher, error) {
	return func() (proc.Launcher, error) {
		f()
		f = func() {}
		return launch()
	}
}

func (w *world) must(err error) { w.t.Helper(); must(w.t, err) }

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// landedUnrecorded is a task whose commit is on the target while the board still says landing: what a crash leaves.
func (w *world) landedUnrecorded(receipt string) muster.Task {
	w.t.Helper()
	task, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	onto := w.git("rev-parse", target)
	head, _, err := w.lanes.Commit(w.ctx(), task.Worktree, "work")
	w.must(err)
	_, err = w.board.BeginLanding(w.ctx(), task.ID, task.Fence, muster.PendingLanding{Head: head, Onto: onto, Summary: "noted before the crash"})
	w.must(err)
	w.moveAsLanded(task, lane, receipt)
	return task
}

// mergeUnreturned merges the target into the lane of a task, and returns the commit that was to land. The board still says
// landing: what a crash leaves where there are conflicts.
func (w *world) mergeUnreturned(task muster.Task) (head string) {
	w.t.Helper()
	head, _, err := w.lanes.Commit(w.ctx(), task.Worktree, "work")
	w.must(err)
	tip := w.git("rev-parse", target)
	_, err = w.board.BeginLanding(w.ctx(), task.ID, task.Fence, muster.PendingLanding{Head: head, Onto: tip})
	w.must(err)
	_, err = w.lanes.Merge(w.ctx(), task.Worktree, tip)
	w.must(err)
	return head
}

// moveAsLanded moves the target as the landing of a task that is noted does, and records nothing.
func (w *world) moveAsLanded(task muster.Task, lane, receipt string) {
	w.t.Helper()
	onto := w.git("rev-parse", target)
	commit, err := w.repo.CommitTree(w.ctx(), gittest.Git(w.t, lane, "rev-parse", "HEAD^{tree}"), []string{onto},
		fmt.Sprintf("One\n\nMuster-Task: 9\n\nMuster-Task: %d\nMuster-Member: alice\nMuster-Check: %s\n", task.ID, receipt))
	w.must(err)
	updates := []git.RefUpdate{{Ref: target, New: commit, Old: onto}}
	ref := fmt.Sprintf("refs/muster/landing/%d-%d", task.ID, task.Fence)
	at, err := w.repo.Ref(w.ctx(), ref)
	w.must(err)
	if at != "" {
		updates = append(updates, git.RefUpdate{Ref: ref, Old: at})
	}
	w.must(w.repo.UpdateRefs(w.ctx(), updates))
}

// What a crash has left; the same call goes on.
func TestGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	t.Run("landed, not recorded", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
		task := w.landedUnrecorded(muster.ReceiptGreen + ", make test")
		tip := w.git("rev-parse", target)
		other, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
		w.lands(other) // others go on meanwhile
		w.process("")
		v, err := w.land.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)
		if err != nil || v.Task.Landed == nil || v.Task.Landed.Commit != tip || v.Task.Landed.Receipt != muster.ReceiptGreen || v.Task.Landed.Check != "make test" || v.Task.Result != "noted before the crash" {
			t.Errorf("%+v, %v", v, err)
		}
		equal(t, "it landed twice", w.git("rev-list", "--count", "main.."+target), "2")
	})
	t.Run("landing ref left by a half transaction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
		task := w.landedUnrecorded(muster.ReceiptUnchecked)
		w.git("update-ref", "refs/muster/landing/1-1", "main")
		if v, err := w.try(task); err != nil || v.Task.Landed == nil {
			t.Errorf("%+v, %v", v, err)
		}
		w.noRefs()
	})
	t.Run("conflicts merged, board not told", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
		one, _ := w.task("One", "alice", map[string]string{"a.txt": "one\n"})
		two, _ := w.task("Two", "bob", map[string]string{"a.txt": "two\n"})
		w.lands(one)
		w.git("update-ref", "refs/muster/landing/2-1", w.mergeUnreturned(two))
		w.process("")
		if v := w.back(two); !strings.Contains(v.Text, "meanwhile, in a.txt.\n") || v.Task.Status != muster.InProgress || v.Task.Rounds != 1 {
			t.Errorf("%+v", v)
		}
	})
}

// The target moves while the check runs: merged and checked again on the new one.
func TestTheTargetMovesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	v, err := w.during(two, func() { w.lands(one) })
	if err != nil || v.Task.Landed == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	equal(t, "the target", w.git("ls-tree", "--name-only", target), "a.txt\none\ntwo")
	if _, err := os.Stat(w.log("task-2-1-2.log")); err != nil {
		t.Errorf("checked once only: %v", err)
	}
}

// Work of a task without a lane has nothing to land.
func TestATaskWithoutALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	task, _ := w.task("One", "alice", nil)
	if task, err := w.board.SetLane(w.ctx(), task.ID, task.Fence, "", ""); err != nil {
		t.Fatal(err)
	} else if v, err := w.try(task); err != nil || v.Task.Landed != nil || v.Task.Status != muster.Completed {
		t.Errorf("%+v, %v", v, err)
	}
}
