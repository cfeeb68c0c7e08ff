//go:build failpoint

package landing_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/faultinject"
)

// dieAt calls f in a process that dies at the point, and reports whether it has passed it. What another goroutine of the
// process was about to do then does not happen either.
func (w *world) dieAt(point string, f func(context.Context)) (died bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.ctx())
	defer cancel(nil)
	var isDead atomic.Bool
	stop := faultinject.Watch(func(p string) {
		if p == point {
			isDead.Store(true)
		}
		if isDead.Load() {
			cancel(errKilled)
			runtime.Goexit()
		}
	})
	defer stop()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		f(ctx)
	}()
	<-ended
	w.must(landing.AwaitDrainer(w.ctx(), w.land))
	return isDead.Load()
}

// A process dies at each point of a landing that lands, and of one that comes back. The next process goes on with the
// claim: the work lands once, with the summary that was noted, or comes back once.
func TestACrashAtEachPoint(t *testing.T) {
	const check = "! ls bad-*"
	w := newWorld(t, check, map[string]string{"a.txt": "a\n"})
	w.state = landing.BaseGreen
	passed, isNoted := 0, false
	for _, p := range faultinject.Places() {
		if !strings.HasPrefix(p.Name, "landing.") {
			continue
		}
		isNoted = isNoted || p.Name == "landing.noted"
		for _, file := range []string{"good-" + p.Name, "bad-" + p.Name} {
			isBad := strings.HasPrefix(file, "bad-")
			tip := w.git("rev-parse", target)
			task, _ := w.task("One", "alice", map[string]string{file: "x\n"})
			died := w.dieAt(p.Name, func(ctx context.Context) {
				_, _ = w.land.Land(ctx, task.ID, task.Fence, "first words", task.Owner)
			})
			if died {
				passed++
			}
			w.process(check)
			// Once the board has given the task back, nothing of the attempt may land.
			if now, err := w.board.Get(w.ctx(), task.ID); err != nil || now.Rounds > 0 {
				w.must(err)
				w.noRefs()
			}
			v, err := w.land.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)
			if errRed := isBad && (err != nil || v.Task.Status != muster.InProgress || v.Task.Returns == 0 || v.Task.Returns > 2); errRed {
				t.Errorf("%s at %s: %+v, %v", file, p.Name, v, err)
			}
			if isBad {
				w.noRefs()
				w.must(w.board.Delete(w.ctx(), task.ID, true))
				continue
			}
			if err != nil || v.Task.Landed == nil || isNoted && v.Task.Result != "first words" {
				t.Errorf("%s at %s: %+v, %v", file, p.Name, v, err)
			}
			if n := w.git("rev-list", "--count", tip+".."+target); n != "1" || w.show(file) != "x" {
				t.Errorf("killed at %s, it landed as %s commits", p.Name, n)
			}
			w.noRefs()
		}
	}
	if passed < 15 {
		t.Error(fmt.Sprint("only ", passed, " points were passed"))
	}
}
