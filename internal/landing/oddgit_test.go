package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// The steps at which a git fails or dies while a landing goes another way than straight to the target. The landing must
// come to the end to which it would have come, or return an error that does not call the claim over; then the next call
// comes to that end.
func TestAGitThatFailsOnceOnTheWay(t *testing.T) {
	fails, dies := "exit 128", "kill -9 $$"
	// beside makes a task with a file in its lane. The target has meanwhile got other content for another file, or for it.
	beside := func(other, file string) func(w *world) muster.Task {
		return func(w *world) muster.Task {
			task, _ := w.task("One", "alice", map[string]string{file: "two\n"})
			w.landFiles("Meanwhile", "zoe", map[string]string{other: "other\n"})
			w.state = "ok"
			return task
		}
	}
	merging, conflict, union := beside("a.txt", "b.txt"), beside("a.txt", "a.txt"), beside("log.txt", "log.txt")
	interrupted := func(w *world) muster.Task { // merged with conflicts, and not yet returned
		task := conflict(w)
		w.mergeUnreturned(task)
		return task
	}
	unrecorded := func(w *world) muster.Task {
		task := w.landedUnrecorded(muster.ReceiptUnchecked)
		w.git("update-ref", "refs/muster/landing/1-1", "main")
		return task
	}
	for name, c := range map[string]struct {
		check   string
		makes   func(w *world) muster.Task
		lands   bool // rather than comes back
		pattern string
		nth     int
		line    string
	}{
		"red: is the lane behind":           {"test ! -f b.txt", merging, false, "*' merge-base '*", 1, fails},
		"red: the merge into the lane":      {"test ! -f b.txt", merging, false, "*' merge '*", 1, dies},
		"red: the landing ref":              {"test ! -f b.txt", merging, false, "*' update-ref '*", 3, fails},
		"conflict: the merge into the lane": {"", conflict, false, "*' merge '*", 1, dies},
		"conflict: what is unmerged":        {"", conflict, false, "*' --unmerged '*", 1, fails},
		"union: the commit of the merge":    {"", union, true, "*' commit-tree '*", 2, dies},
		"resumed conflict: what is open":    {"", interrupted, false, "*' --unmerged '*", 1, fails},
		"landed: the history":               {"", unrecorded, true, "*' log '*", 1, fails},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains([]string{"red: the landing ref", "conflict: the merge into the lane", "landed: the history", "resumed conflict: what is open"}, name) {
				tier.All(t)
			}
			w := newWorld(t, c.check, map[string]string{"a.txt": "a\n", "log.txt": "", ".gitattributes": "log.txt merge=union\n"})
			task := c.makes(w)
			happened := oddGit(t, c.pattern, c.nth, c.line)
			v, err := w.try(task)
			if !happened() {
				t.Fatal("no git has failed")
			}
			if err != nil {
				if errors.Is(err, muster.ErrFenced) || name == "resumed conflict: what is open" {
					t.Errorf("%v", err)
				}
				v, err = w.try(task)
			}
			now, getErr := w.board.Get(w.ctx(), task.ID)
			w.must(getErr)
			if err != nil || c.lands && now.Landed == nil || !c.lands && (v.Text == "" || now.Rounds != 1 || now.Status != muster.InProgress) {
				t.Errorf("%+v, %v; on the board %+v", v, err, now)
			}
			want := "1"
			if name[:5] == "union" {
				want = "2" // with the one that came meanwhile
			}
			equal(t, "commits on the target", w.git("rev-list", "--count", "--first-parent", "main.."+target), want)
			w.noRefs()
		})
	}
}

// A git that answers nothing is never taken for a target, or refs, that are not there.
func TestAGitThatAnswersNothing(t *testing.T) {
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	w.git("update-ref", "refs/muster/revoked/9-1", "main")
	w.git("symbolic-ref", "refs/heads/alias", target)
	l := w.lander("", launch, func(o *landing.Options) { o.Target = "refs/heads/alias" })
	oddGit(t, "*", 0, "exit 128")
	if tip, err := l.Target(w.ctx()); err == nil || errors.Is(err, muster.ErrNotFound) || tip != "" {
		t.Errorf("%q, %v", tip, err)
	}
	if err := landing.ForgetRevoked(w.ctx(), w.repo, nil); err == nil {
		t.Error("there is no error")
	}
}

// The end of the context is what the caller is told, also when a landing is about to be tried again.
func TestTheEndOfALanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(w.ctx())
	l := w.lander("true", launch, at("landing checked", func() { stop(enough) }))
	if _, err := l.Land(ctx, task.ID, task.Fence, "", task.Owner); !errors.Is(err, enough) || errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	ctx, stop = context.WithCancelCause(w.ctx())
	l = w.lander("true", launch, func(o *landing.Options) {
		o.CheckState = func(context.Context, string) (string, error) {
			stop(enough)
			return "", muster.Errorf(muster.Unavailable, "the disk is gone")
		}
	})
	_, err := l.Land(ctx, task.ID, task.Fence, "", task.Owner)
	if !errors.Is(err, enough) && !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Status != muster.Landing {
		t.Errorf("completed, and the green check is not recorded: %+v, %v", got, err)
	}
	w.landed(w.try(task))
	equal(t, "commits", w.git("rev-list", "--count", "main.."+target), "1")
	// What has begun to land when its owner goes is recorded when the call returns.
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	ctx, stop = context.WithCancelCause(w.ctx())
	l = w.lander("true", launch, at("landing moved the target", func() {
		stop(enough)
		wait.Poll(time.Minute, func() bool { return landing.Waiting(l) == 0 }) // its owner goes
	}))
	is(t, "given up", fault(l.Land(ctx, two.ID, two.Fence, "", two.Owner)), enough)
	if got, err := w.board.Get(w.ctx(), two.ID); err != nil || got.Landed == nil {
		t.Errorf("%+v, %v", got, err)
	}
	// Nor are the checks of the two halves of a red stack at work any more.
	w.state = landing.BaseGreen
	ctx, stop = context.WithCancelCause(w.ctx())
	out, tasks, h := t.TempDir(), w.many(3), newHold(t)
	l = w.lander(h.check("[ $(ls | grep -c file) -lt 3 ] && pwd >> "+out+"/pwd && sleep 300"), launch,
		func(o *landing.Options) { o.Jobs = 2 })
	first := w.begin(ctx, l, tasks[0])
	wait.For(t, "the first check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
	ends := []<-chan ending{w.begin(ctx, l, tasks[1]), w.begin(ctx, l, tasks[2])}
	wait.For(t, "the others", func() bool { return landing.Waiting(l) == 3 })
	w.must(os.WriteFile(filepath.Join(h.dir, "open"), nil, 0o600))
	is(t, "the first", (<-first).err, nil)
	wait.For(t, "the checks", func() bool { return strings.Count(gittest.Read(t, out, "pwd"), "\n") == 2 })
	stop(enough)
	for _, end := range ends {
		is(t, "given up", (<-end).err, enough)
	}
	for _, dir := range strings.Fields(gittest.Read(t, out, "pwd")) {
		is(t, "the directory of a check", fault(os.Stat(dir)), os.ErrNotExist)
	}
}

// A landing whose move of the target could not be synced is landed, once, and recorded.
func TestATargetThatWasNotSynced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	mend := func() {}
	w.landed(w.during(task, func() { mend = w.unsyncable() }))
	equal(t, "commits", w.git("rev-list", "--count", "main.."+target), "1")
	mend()
}

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
			now, getErr := w.board.Get(w.ctx(), task.ID)
			if getErr != nil || now.Owner != "ann" || now.Fence != task.Fence || errors.Is(err, muster.ErrFenced) ||
				errors.Is(err, context.DeadlineExceeded) {
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
		require.NoError(t, fault(w.board.Revoke(w.ctx(), task.ID, task.Fence, muster.Lead, "late")))
		wants(t, fault(w.try(task)), muster.ErrFenced, "")
		equal(t, "the lane is not as it was", gittest.Read(t, lane, "b"), "b\n")
	})
}

// What a late owner did is in its lane, also when git fails to keep it aside; the owner is told.
func TestAFailedGitTellsALateOwnerWhereTheWorkIs(t *testing.T) {
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	w.must(takeBack(w, task))
	for _, pattern := range []string{"*' refs/muster/archive/ '*", "*' write-tree '*"} { // of the landing, and of its lane
		t.Run(pattern, func(t *testing.T) {
			w.git("update-ref", "refs/muster/landing/1-1", "main")
			happened := oddGit(t, pattern, 0, "exit 128")
			_, err := w.try(task)
			wants(t, err, muster.ErrFenced, "the claim was taken back")
			if !happened() || !strings.Contains(hint(err), "still in its lane") || w.kept(err, "late") != "" {
				t.Errorf("hint %q", hint(err))
			}
		})
	}
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
		equal(t, "the refs", gittest.Git(t, root, "for-each-ref"), refs)
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
		equal(t, "the target", w.git("rev-parse", target), w.git("rev-parse", "HEAD"))
		equal(t, "kept", w.git("for-each-ref", "--format=%(objectname)", "refs/muster/archive/muster-demo-*"), tip)
	})
}
