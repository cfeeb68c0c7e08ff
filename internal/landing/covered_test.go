package landing_test

import (
	"os"
	"path/filepath"
	"testing"

	"muster/internal/landing"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
	"muster/journal"
)

// While nobody waits, the commits that landed covered are checked one by one: of a green one there is a receipt, of a
// red one people are told, and nothing is undone. Who queues meanwhile does not wait for that.
func TestCoveredCommitsAreCheckedWhenIdle(t *testing.T) {
	tier.All(t)
	t.Parallel()
	h, receipts := newHold(t), t.TempDir()
	// The files tell the position in the stack. The lowest hangs until it is ended, and the second is red by itself.
	check := h.check(`case $(ls | grep -c file-) in
1) test -e ` + h.dir + `/go || { touch ` + h.dir + `/hangs; exec sleep 300; };;
2) exit 1;;
esac`)
	on := func(o *landing.Options) { o.CheckCovered, o.Receipts = true, receipts }
	w := newWorld(t, check, nil, on)
	verdicts := w.queued(h, w.many(4)...)
	tip := w.git("rev-parse", target)
	for id, v := range verdicts {
		if v.Task.Landed == nil {
			t.Fatalf("task %d has not landed: %s", id, v.Text)
		}
	}
	wait.For(t, "the check of a covered commit", func() bool { _, err := os.Stat(filepath.Join(h.dir, "hangs")); return err == nil })
	// Somebody queues: that check ends at once, and its commit is checked later.
	must(t, os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600))
	late, _ := w.task("Late", "eve", map[string]string{"late": "1\n"})
	w.lands(late)
	wait.For(t, "the red one to be told", func() bool {
		return len(w.said(journal.RunNote, "text", "is red by itself: exit 1")) == 1
	})
	// Three that were covered, and three whose check has run before they landed.
	wait.For(t, "the receipts", func() bool { files, _ := filepath.Glob(receipts + "/*"); return len(files) == 6 })
	equal(t, "the target has lost what had landed", w.git("merge-base", tip, target), tip)
}
