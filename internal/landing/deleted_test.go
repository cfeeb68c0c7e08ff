package landing_test

import (
	"context"
	"os"
	"testing"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

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
		if _, err := w.repo.Resolve(w.ctx(), "refs/muster/revoked/1-1"); err != nil {
			t.Error(err)
		}
	})
	wants(t, err, muster.ErrFenced, "it was deleted")
	if w.kept(err, "late") != "late" || w.git("rev-parse", target) != tip {
		t.Errorf("hint %q, the target is at %s", hint(err), w.git("rev-parse", target))
	}
	w.noRefs()
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
	equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptGreen)
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
