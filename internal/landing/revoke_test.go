package landing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/store/storetest"
)

// A revocation that may not have happened is an error: the board takes no claim back whose work could still land.
func TestARevocationThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	branch := w.git("symbolic-ref", "HEAD")
	w.git("symbolic-ref", "HEAD", "refs/heads/unborn")
	wants(t, w.land.Revoke(w.ctx(), task.ID, task.Fence), muster.ErrNotFound, "HEAD")
	w.git("symbolic-ref", "HEAD", branch)
	w.lands(task)
	mend := w.unsyncable()
	wants(t, w.land.Revoke(w.ctx(), 8, 1), muster.ErrUnavailable, "cannot be synced")
	w.git("update-ref", "refs/muster/revoked/9-1", "main")
	wants(t, landing.ForgetRevoked(w.ctx(), w.repo, nil), muster.ErrUnavailable, "cannot be synced")
	mend()
	w.must(w.land.Revoke(w.ctx(), 8, 1)) // of a task that the board does not have
}

// A landing and a revocation that cross: whichever comes second sees the first, and the claim lands nothing.
func TestALandingAndARevocationCross(t *testing.T) {
	for _, ref := range []string{"revoked", "landing"} {
		t.Run(ref, func(t *testing.T) {
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
			happened := oddGit(t, "*' update-ref '*", 1, "git --git-dir='"+w.root+"/.git' update-ref refs/muster/"+ref+"/1-1 main")
			w.process("")
			if ref == "landing" {
				require.NoError(t, w.land.Revoke(w.ctx(), task.ID, task.Fence))
			} else {
				wants(t, fault(w.try(task)), muster.ErrFenced, "the claim was taken back")
			}
			w.noRefs()
			equal(t, "it has crossed", happened(), true)
		})
	}
}

// Work that has landed is recorded by who revokes the claim that landed it, and by nobody else.
func TestARevocationOfAnotherClaimRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task := w.landedUnrecorded(muster.ReceiptUnchecked)
	w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence+1))
	w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence-1))
	if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Status != muster.Landing {
		t.Errorf("%+v, %v", got, err)
	}
	tip := w.git("rev-parse", target)
	w.git("update-ref", "-d", target)
	wants(t, w.land.Revoke(w.ctx(), task.ID, task.Fence), muster.ErrNotFound, "is gone") // it cannot be told
	w.git("update-ref", target, tip)
	wants(t, w.land.Revoke(w.ctx(), task.ID, task.Fence), muster.ErrHeld, "has just landed")
	if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Status != muster.Completed || got.Landed == nil ||
		got.Result != "noted before the crash" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever the store fails, a revocation that it kept from being judged is not called done.
func TestARevocationWithAStoreThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task := w.landedUnrecorded(muster.ReceiptUnchecked)
	store := w.store
	tasks := func(op string) bool { return op == "get tasks/1" || op == "put tasks/1" }
	storetest.FailEach(t, tasks, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		w.store = wrap(store)
		w.process("")
		err := w.land.Revoke(w.ctx(), task.ID, task.Fence)
		if errors.Is(err, muster.ErrHeld) {
			return nil // it has just landed
		}
		return err
	})
}

// A store that fails once costs a landing nothing but time, whatever it was asked.
func TestAStoreThatFailsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	failing, left := "", 0 // the operation that fails, and how many of it there are up to that
	w.store = storetest.Failing(w.store, func(op string) bool {
		if failing == "" || !strings.HasPrefix(op, failing) {
			return false
		}
		left--
		return left == 0
	})
	w.process("test ! -f red")
	// fails lets the nth operation of work fail, and reports whether there was one.
	fails := func(op string, n int, work func()) bool {
		failing, left = op, n
		work()
		failing = ""
		return left <= 0
	}
	name := 'a'
	for _, op := range []string{"put tasks", "get tasks"}[:tier.Amount(1, 2)] {
		for n, more := 1, true; more; n++ {
			name++
			task, _ := w.task("One", "alice", map[string]string{string(name): "1\n"})
			more = fails(op, n, func() { w.lands(task) })
		}
	}
	unchanged, _ := w.task("Two", "bob", nil)
	if !fails("put tasks", 1, func() {
		if v, err := w.try(unchanged); err != nil || v.Task.Status != muster.Completed {
			t.Errorf("%+v, %v", v, err)
		}
	}) {
		t.Error("nothing has failed")
	}
	bad, _ := w.task("Three", "carol", map[string]string{"red": "1\n"})
	w.state = "ok"
	if !fails("put tasks", 2, func() {
		if v := w.back(bad); v.Task.Status != muster.InProgress || v.Task.Returns != 1 {
			t.Errorf("%+v", v)
		}
	}) {
		t.Error("nothing has failed")
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "1\n"})
	repo, err := git.Open(t.Context(), root)
	require.NoError(t, err)
	// Of tasks on the board: a claim that was, one that the task has not had yet. Of none: 7-1. Of no claim: the rest.
	for _, name := range []string{"revoked/1-1", "revoked/1-2", "revoked/2-3", "revoked/7-1", "revoked/words", "landing/7-1", "archive/try-1"} {
		gittest.Git(t, root, "update-ref", "refs/muster/"+name, "HEAD")
	}
	for range 2 {
		require.NoError(t, landing.ForgetRevoked(t.Context(), repo, []muster.Task{{ID: 1, Fence: 2}, {ID: 2, Fence: 2}}))
		left := strings.Fields(gittest.Git(t, root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/muster"))
		equal(t, "left", fmt.Sprint(left), "[archive/try-1 landing/7-1 revoked/1-1 revoked/1-2 revoked/words]")
	}
}
