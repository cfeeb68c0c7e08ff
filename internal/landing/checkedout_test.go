package landing_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/wait"
	"muster/journal"
)

// look checks the target out, as somebody who looks at it, and leave removes that checkout.
func (w *world) look()  { w.git("worktree", "add", "-q", w.root+"-look", "muster/demo") }
func (w *world) leave() { w.git("worktree", "remove", w.root+"-look") }

// waits returns how often people were told that landings wait because of the checkout.
func (w *world) waits() int {
	w.t.Helper()
	return len(w.said(journal.RunNote, "text", "muster/demo is checked out at "+w.root+"-look: landings wait"))
}

// awaitWait waits until people were told so for the nth time.
func (w *world) awaitWait(n int) {
	w.t.Helper()
	for _, err := range w.journal.Follow(w.ctx(), 0) {
		w.must(err)
		if w.waits() == n {
			return
		}
	}
}

// ending is the end of a landing that goes on beside the test.
type ending struct {
	v   landing.Verdict
	err error
}

func (w *world) begin(ctx context.Context, l *landing.Lander, t muster.Task) <-chan ending {
	over := make(chan ending, 1)
	go func() {
		v, err := l.Land(ctx, t.ID, t.Fence, "Does it.", t.Owner)
		over <- ending{v, err}
	}()
	return over
}

// A target that somebody has checked out is not moved under them: the landing waits, says so once, and goes on when
// they have seen enough; or ends as it would have.
func TestTheTargetIsCheckedOut(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		isLate bool // they look while the check runs
		then   func(w *world, task muster.Task, stop context.CancelCauseFunc)
		ends   error
	}{
		"before":           {false, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"during the check": {true, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"the claim is over": {false, func(w *world, task muster.Task, _ context.CancelCauseFunc) {
			w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence))
			w.must(takeBack(w, task))
		}, muster.ErrFenced},
		"its owner ends": {true, func(_ *world, _ muster.Task, stop context.CancelCauseFunc) { stop(enough) }, enough},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
			tip := w.git("rev-parse", target)
			ctx, stop := context.WithCancelCause(w.ctx())
			defer stop(nil)
			l := w.land
			if c.isLate {
				l = w.lander("true", launchAfter(w.look, launch))
			} else {
				w.look()
			}
			over := w.begin(ctx, l, task)
			w.awaitWait(1)
			if w.git("rev-parse", target) != tip {
				t.Fatal("it landed")
			}
			c.then(w, task, stop)
			end := <-over
			if n := w.waits(); !errors.Is(end.err, c.ends) || n != 1 || (end.v.Task.Landed != nil) != (c.ends == nil) ||
				(w.git("rev-parse", target) != tip) != (c.ends == nil) {
				t.Errorf("%+v, %v; said %d times", end.v, end.err, n)
			}
		})
	}
}

// However long somebody looks, it is said once, and the landing does not begin anew. It is said again when they look
// again, also where the landing that waited before was ended.
func TestTheTargetIsCheckedOutForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	lines := &lineHandler{text: "landing begins"}
	l := w.lander("", launch, func(o *landing.Options) { o.Log = slog.New(lines) })
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	w.look()
	over := w.begin(w.ctx(), l, one)
	w.awaitWait(1)
	wait.Elapse(2500 * time.Millisecond) // longer than until the second look at the checkouts
	w.must(w.land.Revoke(w.ctx(), one.ID, one.Fence))
	w.must(takeBack(w, one))
	if end := <-over; !errors.Is(end.err, muster.ErrFenced) || w.waits() != 1 || lines.n != 1 {
		t.Errorf("%v; said %d times, begun %d times", end.err, w.waits(), lines.n)
	}
	w.leave()
	w.look()
	ctx, stop := context.WithCancel(w.ctx())
	over = w.begin(ctx, l, two)
	w.awaitWait(2)
	stop()
	if end := <-over; !errors.Is(end.err, context.Canceled) || w.waits() != 2 || lines.n != 2 {
		t.Errorf("given up: %v; said %d times, begun %d times", end.err, w.waits(), lines.n)
	}
	w.leave()
	w.lands(two)
}

// A landing does not wait without saying so.
func TestAWaitThatCannotBeSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.look()
	var isFull atomic.Bool
	isFull.Store(true)
	w.store = failingStore{w.store, func(op string) bool { return isFull.Load() && strings.HasPrefix(op, "append") }}
	w.process("")
	wants(t, fault(w.try(task)), muster.ErrUnavailable, "the disk is gone")
	isFull.Store(false)
	ctx, stop := context.WithCancel(w.ctx())
	over := w.begin(ctx, w.land, task)
	w.awaitWait(1)
	stop()
	if end := <-over; !errors.Is(end.err, context.Canceled) {
		t.Error(end.err)
	}
	w.leave()
}
