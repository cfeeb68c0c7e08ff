package landing_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

// revoking wires the board's deletions to the lander, as a run does.
func (w *world) revoking() {
	w.board.OnRevoke(func(ctx context.Context, t muster.Task) error { return w.land.Revoke(ctx, t.ID, t.Fence) })
}

// notLanded fails unless the landing was refused for a deletion and its work kept aside.
func (w *world) notLanded(tip string, err error) {
	w.t.Helper()
	wants(w.t, err, muster.ErrFenced, "it was deleted")
	var e *muster.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "refs/muster/archive/") {
		w.t.Errorf("hint of %v", err)
	}
	if w.git("rev-parse", target) != tip {
		w.t.Fatal("it landed")
	}
	w.noRefs()
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
		if _, err := w.repo.Resolve(w.ctx(), "refs/muster/revoked/1-1"); err != nil {
			t.Error(err)
		}
	})
	w.notLanded(tip, err)
}

// Another program marks it as deleted.
func TestMarkedDeletedWhileItLands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	tip := w.git("rev-parse", target)
	mark := func() {
		table := w.store.Table(muster.TableTasks)
		doc, err := table.Get(w.ctx(), "1")
		w.must(err)
		_, err = table.Put(w.ctx(), "1", []byte(strings.Replace(string(doc.Data), `"landing"`, `"deleted"`, 1)), doc.Rev)
		w.must(err)
	}
	task, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	_, err := w.during(task, mark)
	w.notLanded(tip, err)
}

// And is swept by a board that can revoke, before the landing looks.
func TestSweptWhileItLands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	tip := w.git("rev-parse", target)
	w.revoking()
	task, _ := w.task("One", "alice", map[string]string{"late": "late\n"})
	_, err := w.during(task, func() {
		table := w.store.Table(muster.TableTasks)
		doc, err := table.Get(w.ctx(), "1")
		w.must(err)
		_, err = table.Put(w.ctx(), "1", []byte(strings.Replace(string(doc.Data), `"landing"`, `"deleted"`, 1)), doc.Rev)
		w.must(err)
		w.must(w.board.Settle(w.ctx()))
		if _, err := w.repo.Resolve(w.ctx(), "refs/muster/revoked/1-1"); err != nil {
			t.Error(err)
		}
	})
	w.notLanded(tip, err)
}

// It has landed already when it is deleted: that is recorded, and the deletion refused.
func TestDeletedTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	w.revoking()
	task := w.landedUnrecorded(muster.ReceiptUnchecked)
	wants(t, w.board.Delete(w.ctx(), task.ID, true), muster.ErrHeld, "has just landed")
	if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Status != muster.Completed {
		t.Errorf("%+v, %v", got, err)
	}
	w.must(w.board.Delete(w.ctx(), task.ID, true)) // who asks again means it
}

// No key of a model and none of muster's settings reaches a check, which runs what agents wrote.
func TestTheCheckSeesNoKeys(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "MUSTER_MODEL"} {
		t.Setenv(name, "secret")
	}
	w := newWorld(t, "! env | grep secret", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) {
		o.Check.Setup = "! env | grep secret"
	})
	task, _ := w.task("One", "alice", map[string]string{"b": "b\n"})
	if v := w.lands(task); v.Task.Landed.Receipt != muster.ReceiptGreen {
		t.Errorf("%+v", v)
	}
}

func TestNamesThatAreNoBranch(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, root, "switch", "-q", "-c", "other")
	gittest.Git(t, root, "switch", "-q", "main")
	for _, name := range []string{"-x", "--all", "@{-1}", "HEAD", "a b", ""} {
		_, err := landing.PrepareTarget(t.Context(), repo, name, true, false)
		wants(t, err, muster.ErrInvalid, "cannot be the name of a branch")
	}
}

// A git that was killed while it moved the target left its lock.
func TestPrepareTargetBreaksADeadLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	gittest.Write(t, w.root, map[string]string{".git/refs/heads/muster/demo.lock": "", ".git/packed-refs.lock": ""})
	for _, lock := range []string{"/.git/refs/heads/muster/demo.lock", "/.git/packed-refs.lock"} {
		at := time.Now().Add(-9800 * time.Millisecond)
		w.must(os.Chtimes(w.root+lock, at, at))
	}
	_, err := landing.PrepareTarget(w.ctx(), w.repo, "muster/demo", false, false)
	w.must(err)
	task, _ := w.task("One", "alice", map[string]string{"b": "b\n"})
	w.lands(task)
}
