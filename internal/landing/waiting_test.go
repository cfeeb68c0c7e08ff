package landing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// A task that waits and conflicts with what has just landed comes back while checks still find out what else is red.
func TestAConflictComesBackWhileTheStackIsRed(t *testing.T) {
	tier.All(t)
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	told := filepath.Join(h.dir, "told")
	// The check of "good" alone waits until the conflict was told.
	w := newWorld(t, h.check(fmt.Sprintf("test -e good || { test ! -e bad; exit; }; test ! -e bad || exit 1; "+
		"n=0; while [ ! -e %s ]; do n=$((n+1)); [ $n -lt 10000 ] || exit 1; sleep 0.01; done", told)),
		map[string]string{"a.txt": "a\n"})
	landing.Halve(w.land)
	one, _ := w.task("One", "alice", map[string]string{"a.txt": "one\n"})
	good, _ := w.task("Good", "bob", map[string]string{"good": "x\n"})
	bad, _ := w.task("Bad", "carol", map[string]string{"bad": "x\n"})
	two, _ := w.task("Two", "dave", map[string]string{"a.txt": "two\n"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.For(t, "the conflict to come back", func() bool {
			got, err := w.board.Get(w.ctx(), two.ID)
			return err != nil || got.Returned != ""
		})
		if err := os.WriteFile(told, nil, 0o600); err != nil {
			t.Error(err)
		}
	}()
	verdicts := w.queued(h, one, good, bad, two)
	<-done
	for id, status := range map[muster.TaskID]muster.TaskStatus{one.ID: muster.Completed, good.ID: muster.Completed,
		bad.ID: muster.InProgress, two.ID: muster.InProgress} {
		if got := verdicts[id].Task.Status; got != status {
			t.Errorf("task %d is %s, want %s: %s", id, got, status, verdicts[id].Text)
		}
	}
}
