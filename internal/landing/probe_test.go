package landing_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// A check that has only just begun is given up for those who come then: one check proves them all.
func TestNewcomersJoinAYoungCheck(t *testing.T) {
	tier.All(t)
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	w.state = landing.BaseGreen
	landing.SetCheckTook(w.land, time.Hour)
	tasks := w.many(3)
	var all sync.WaitGroup
	land := func(task muster.Task) {
		all.Go(func() {
			if v, err := w.try(task); err != nil || v.Task.Landed == nil {
				t.Errorf("task %d: %+v, %v", task.ID, v, err)
			}
		})
	}
	land(tasks[0])
	// Nothing opens it: it would be held for ever.
	wait.For(t, "the first check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
	land(tasks[1])
	land(tasks[2])
	all.Wait()
	if n := h.runs(t); n > 3 {
		t.Errorf("%d checks", n)
	}
	if first, err := w.board.Get(w.ctx(), tasks[0].ID); err != nil || first.Landed.Receipt != muster.ReceiptCovered {
		t.Errorf("%+v, %v", first.Landed, err)
	}
	w.noRefs()
}
