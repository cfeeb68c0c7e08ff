package landing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/wait"
)

// A claim that ends while its work is checked lands nothing, whoever ended it and however. Its owner reads why, and
// where the work is.
func TestAClaimThatEndsInTheCheckNeverLands(t *testing.T) {
	t.Parallel()
	revoke := func(w *world, task muster.Task, _ string) {
		w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence))
		w.noRefs()
	}
	takenBack := func(w *world, task muster.Task, _ string) { w.must(takeBack(w, task)) }
	for name, c := range map[string]struct {
		check string
		ends  func(w *world, task muster.Task, lane string)
		says  string
	}{
		"revoked, the board not told":           {"true", revoke, "the claim was taken back"},
		"revoked, and the check is red":         {"false", revoke, "the claim was taken back"},
		"taken back on the board, check is red": {"false", takenBack, "the claim was taken back"},
		"given back to the board": {"true", func(w *world, task muster.Task, _ string) {
			_, err := w.board.Release(w.ctx(), task.ID, task.Fence, board.Release{Reason: "no"})
			w.must(err)
		}, "it was given back to the board"},
		"claimed by another program, lane used": {"true", func(w *world, task muster.Task, lane string) {
			w.edit(task.ID, `"alice"`, `"bob"`, `"fence": 1`, `"fence": 2`)
			gittest.Write(w.t, lane, map[string]string{"more": "more\n"})
		}, "it is bob's now"},
		"put back by another program": {"true", func(w *world, task muster.Task, _ string) {
			w.edit(task.ID, `"landing"`, `"pending"`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			w.state = "ok"
			tip := w.git("rev-parse", target)
			task, lane := w.task("One", "alice", map[string]string{"late": "late\n"})
			l := w.lander(c.check, launchAfter(func() { c.ends(w, task, lane) }, launch))
			v, err := l.Land(w.ctx(), task.ID, task.Fence, "late work", task.Owner)
			wants(t, err, muster.ErrFenced, "task 1 is no longer yours: "+c.says)
			if now := w.git("rev-parse", target); now != tip || v.Task.Landed != nil || v.Text != "" {
				t.Errorf("the target is at %s, %+v", now, v)
			}
			equal(t, "the work that is kept", w.kept(err, "late"), "late")
			if gittest.Read(t, lane, "more") != "" && w.kept(err, "more") != "more" {
				t.Errorf("the files of the lane are not kept: %s", hint(err))
			}
			w.noRefs()
		})
	}
}

// A revoked claim is refused before anything is checked, and an owner who has done nothing is not told of work kept.
func TestARevokedClaimIsNotChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence)) // the board does not know yet
	wants(t, fault(w.during(task, func() { t.Error("it is checked") })), muster.ErrFenced, "the claim was taken back")
	idle, _ := w.task("Two", "bob", nil)
	_, err := w.board.Revoke(w.ctx(), idle.ID, idle.Fence, muster.User, "too slow")
	w.must(err)
	_, err = w.try(idle)
	wants(t, err, muster.ErrFenced, "task 2 is no longer yours: the claim was taken back")
	equal(t, "kept is said to be", hint(err), "")
}

// The claim ends while the lane is committed: the owner is refused, and nothing is completed.
func TestAClaimThatEndsInTheCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		ends  func(w *world, task muster.Task) error
		says  string
	}{
		"taken back": {map[string]string{"late": "late\n"}, takeBack, "the claim was taken back"},
		"deleted": {map[string]string{"late": "late\n"}, func(w *world, task muster.Task) error {
			return w.board.Delete(w.ctx(), task.ID, true)
		}, "it was deleted"},
		"taken back, nothing changed": {nil, takeBack, "the claim was taken back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			tip := w.git("rev-parse", target)
			task, _ := w.task("One", "alice", c.files)
			l := w.lander("", launch, at("landing committed", func() { w.must(c.ends(w, task)) }))
			_, err := l.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)
			wants(t, err, muster.ErrFenced, c.says)
			if (hint(err) != "") != (c.files != nil) || w.kept(err, "late") != strings.TrimSpace(c.files["late"]) {
				t.Errorf("kept: %s", hint(err))
			}
			if got, err := w.board.Get(w.ctx(), task.ID); err == nil && got.Status == muster.Completed || w.git("rev-parse", target) != tip {
				t.Errorf("%+v", got)
			}
			w.noRefs()
		})
	}
}

// takeBack ends the claim on the board.
func takeBack(w *world, task muster.Task) error {
	_, err := w.board.Revoke(w.ctx(), task.ID, task.Fence, muster.User, "too slow")
	return err
}

// A late owner's call leaves the lanes of others alone. It keeps what the late owner did, and nothing else.
func TestALateOwnerTouchesOnlyItsOwnWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	old, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	_, elsewhere := w.task("Two", "carol", map[string]string{"other": "other\n"})
	w.must(w.land.Revoke(w.ctx(), old.ID, old.Fence))
	w.must(takeBack(w, old))
	next, lane := w.claim(old.ID, "bob", map[string]string{"next": "next\n"})
	_, err := w.try(old)
	wants(t, err, muster.ErrFenced, "it is bob's now")
	if w.kept(err, "late") != "late" || w.kept(err, "next") != "" || w.kept(err, "other") != "" {
		t.Errorf("kept: %s", hint(err))
	}
	for dir, file := range map[string]string{lane: "next", elsewhere: "other"} {
		equal(t, "in another's lane", gittest.Git(t, dir, "status", "--porcelain"), "?? "+file)
	}
	w.lands(next)
	wants(t, fault(w.try(old)), muster.ErrFenced, "it is completed")
}

// A lane that is gone holds nothing to keep.
func TestALateOwnerWithoutALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", nil)
	w.must(w.lanes.Remove(w.ctx(), task.Worktree, true))
	w.must(takeBack(w, task))
	_, err := w.try(task)
	wants(t, err, muster.ErrFenced, "the claim was taken back")
	equal(t, "the hint", hint(err), "")
	// A landing ref that cannot be deleted may land what is said to be only kept.
	w.git("update-ref", "refs/muster/landing/1-1", "main")
	gittest.Write(t, w.root, map[string]string{".git/refs/muster/landing/1-1.lock/stays": ""})
	says(t, hint(fault(w.try(task))), "could not be kept aside")
	wants(t, fault(w.land.Land(w.ctx(), 99, 1, "", "alice")), muster.ErrNotFound, "99")
}

// Whoever waits for another landing can give up, or lose the claim, and is told so.
func TestTheEndOfAWaitForAnotherLanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"same": "same\n"})
	two, _ := w.task("Two", "bob", map[string]string{"same": "same\n"})
	three, _ := w.task("Three", "carol", map[string]string{"three": "3\n"})
	enough := errors.New("enough")
	ended, end := context.WithCancelCause(w.ctx())
	end(enough)
	waiting, stop := context.WithCancelCause(w.ctx())
	defer stop(nil)
	revoked, stopped := make(chan error, 1), make(chan error, 1)
	var l *landing.Lander
	l = w.lander("true", launchAfter(func() {
		is(t, "a second call for the task", fault(l.Land(ended, one.ID, one.Fence, "", one.Owner)), enough)
		is(t, "a check of the base", fault(l.CheckBase(ended)), enough)
		equal(t, "the base is said to be", w.state, "")
		go func() { _, err := l.Land(w.ctx(), two.ID, two.Fence, "", two.Owner); revoked <- err }()
		go func() { _, err := l.Land(waiting, three.ID, three.Fence, "", three.Owner); stopped <- err }()
		for _, task := range []muster.Task{two, three} {
			wait.For(t, "landing", func() bool {
				got, err := w.board.Get(w.ctx(), task.ID)
				return err == nil && got.Status == muster.Landing
			})
		}
		stop(enough)
		is(t, "the landing that gave up", <-stopped, enough)
		w.must(w.land.Revoke(w.ctx(), two.ID, two.Fence))
	}, launch))
	w.landed(l.Land(w.ctx(), one.ID, one.Fence, "", one.Owner))
	wants(t, <-revoked, muster.ErrFenced, "the claim was taken back") // although the target has all of its work
	w.lands(three)
}

// A process that has begun a landing is not alone: another one may have gone on with the claim meanwhile.
func TestAnotherProcessGoesOnWithTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	v, err := w.during(task, func() { w.moveAsLanded(task, lane, muster.ReceiptGreen+", make test") })
	if err != nil || v.Task.Status != muster.Completed || v.Task.Landed == nil || v.Task.Landed.Check != "make test" || v.Task.Landed.Commit != w.git("rev-parse", target) {
		t.Errorf("landed by the other: %+v, %v", v, err)
	}
	task, lane = w.task("Two", "bob", map[string]string{"two": "2\n"})
	tip := w.git("rev-parse", target)
	_, err = w.during(task, func() {
		w.write(lane, map[string]string{"more": "more\n"})
		ctx, cancel := context.WithCancel(w.ctx())
		other := w.lander("true", func() (proc.Launcher, error) { cancel(); return nil, ctx.Err() })
		is(t, "the other", fault(other.Land(ctx, task.ID, task.Fence, "", task.Owner)), context.Canceled)
	})
	wants(t, err, muster.ErrHeld, "is being landed by another process")
	equal(t, "it landed", w.git("rev-parse", target), tip)
	w.lands(task)
	equal(t, "the later work has not landed", w.show("more"), "more")
}

// revoking wires the board's deletions to the lander, as a run does.
func (w *world) revoking() {
	w.board.OnRevoke(func(ctx context.Context, t muster.Task) error { return w.land.Revoke(ctx, t.ID, t.Fence) })
}

// The task is deleted by force while its check runs.
func TestDeletedWhileItLands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	tip := w.git("rev-parse", target)
	task, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	_, err := w.during(task, func() {
		wants(t, w.board.Delete(w.ctx(), task.ID, true), muster.ErrHeld, "is being landed") // nobody here can revoke
		w.revoking()
		w.must(w.board.Delete(w.ctx(), task.ID, true))
		w.must(fault(w.repo.Resolve(w.ctx(), "refs/muster/revoked/1-1")))
	})
	wants(t, err, muster.ErrFenced, "it was deleted")
	if w.kept(err, "late") != "late" || w.git("rev-parse", target) != tip {
		t.Errorf("hint %q, the target is at %s", hint(err), w.git("rev-parse", target))
	}
	w.noRefs()
}
