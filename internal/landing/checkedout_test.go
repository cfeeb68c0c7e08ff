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
	"muster/journal"
)

// A target that somebody has checked out is not moved under them: the landing waits, says so once, and goes on when
// they have seen enough; or ends as it would have.
func TestTheTargetIsCheckedOut(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		late bool // they look while the check runs
		then func(w *world, task muster.Task, stop context.CancelCauseFunc)
		ends error
	}{
		"before":           {false, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"during the check": {true, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"the claim is over": {false, func(w *world, task muster.Task, _ context.CancelCauseFunc) {
			w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence))
			_, err := w.board.Revoke(w.ctx(), task.ID, task.Fence, muster.User, "too slow")
			w.must(err)
		}, muster.ErrFenced},
		"its owner ends": {true, func(_ *world, _ muster.Task, stop context.CancelCauseFunc) { stop(enough) }, enough},
		"it is another's": {false, func(w *world, task muster.Task, _ context.CancelCauseFunc) {
			w.edit(task.ID, `"alice"`, `"bob"`, `"fence": 1`, `"fence": 2`)
		}, muster.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
			tip := w.git("rev-parse", target)
			ctx, stop := context.WithCancelCause(w.ctx())
			defer stop(nil)
			type ending struct {
				v   landing.Verdict
				err error
			}
			over := make(chan ending, 1)
			look := func() { w.git("worktree", "add", "-q", w.root+"-look", "muster/demo") }
			go func() {
				if c.late {
					v, err := w.duringIn(ctx, task, look)
					over <- ending{v, err}
					return
				}
				look()
				v, err := w.land.Land(ctx, task.ID, task.Fence, "Does it.", task.Owner)
				over <- ending{v, err}
			}()
			said := 0
			for e, err := range w.journal.Follow(w.ctx(), 0) {
				w.must(err)
				if e.Kind == journal.RunNote && strings.Contains(e.Text("text"), "muster/demo is checked out at "+w.root+"-look: landings wait") {
					break
				}
			}
			if w.git("rev-parse", target) != tip {
				t.Fatal("it landed")
			}
			c.then(w, task, stop)
			end := <-over
			for e, err := range w.journal.Read(w.ctx(), 0) {
				w.must(err)
				if e.Kind == journal.RunNote {
					said++
				}
			}
			if !errors.Is(end.err, c.ends) || said != 1 || (end.v.Task.Landed != nil) != (c.ends == nil) || (w.git("rev-parse", target) != tip) != (c.ends == nil) {
				t.Errorf("%+v, %v; said %d times", end.v, end.err, said)
			}
		})
	}
}

// However long somebody looks, it is said once, and the landing does not begin anew; it is said again when they look
// again.
func TestTheTargetIsCheckedOutForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	enough := errors.New("enough")
	lines := &lineHandler{text: "landing begins"}
	l := w.lander("", launch, func(o *landing.Options) { o.Log = slog.New(lines) })
	// waits lands a task while somebody looks, and gives up so long after it was said, in all, so many times.
	waits := func(task muster.Task, said int, after time.Duration) {
		t.Helper()
		ctx, stop := context.WithCancelCause(w.ctx())
		over := make(chan error, 1)
		go func() { _, err := l.Land(ctx, task.ID, task.Fence, "", task.Owner); over <- err }()
		n := 0
		for e, err := range w.journal.Follow(w.ctx(), 0) {
			w.must(err)
			if e.Kind == journal.RunNote {
				n++
			}
			if n == said {
				break
			}
		}
		time.AfterFunc(after, func() { stop(enough) })
		if err := <-over; !errors.Is(err, enough) {
			t.Errorf("given up: %v", err)
		}
		n = 0
		for e, err := range w.journal.Read(w.ctx(), 0) {
			w.must(err)
			if e.Kind == journal.RunNote {
				n++
			}
		}
		if n != said || lines.n != 1 {
			t.Errorf("said %d times, want %d; begun %d times", n, said, lines.n)
		}
		lines.n = 0
	}
	look := func() { w.git("worktree", "add", "-q", w.root+"-look", "muster/demo") }
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	look()
	waits(task, 1, 2500*time.Millisecond) // longer than until the second look at the checkouts
	over := make(chan error, 1)
	w.leave()
	go func() { _, err := l.Land(w.ctx(), task.ID, task.Fence, "", task.Owner); over <- err }()
	w.must(<-over)
	lines.n = 0
	other, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	look()
	waits(other, 2, 0)
	w.leave()
}

// A landing does not wait without saying so.
func TestAWaitThatCannotBeSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.git("worktree", "add", "-q", w.root+"-look", "muster/demo")
	var isFull atomic.Bool
	isFull.Store(true)
	w.store = failingStore{w.store, func(op string) bool { return isFull.Load() && strings.HasPrefix(op, "append") }}
	w.process("")
	_, err := w.try(task)
	wants(t, err, muster.ErrUnavailable, "the disk is gone")
	isFull.Store(false)
	ctx, stop := context.WithCancel(w.ctx())
	over := make(chan error, 1)
	go func() { _, err := w.land.Land(ctx, task.ID, task.Fence, "", task.Owner); over <- err }()
	for e, err := range w.journal.Follow(w.ctx(), 0) { // the next one that waits says so
		w.must(err)
		if e.Kind == journal.RunNote {
			break
		}
	}
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.leave()
}

// leave removes the checkout in which somebody looks at the target.
func (w *world) leave() { w.git("worktree", "remove", w.root+"-look") }

// A landing that ended while it waited, and one that waits for the next checkout: each is said.
func TestTheNextCheckoutIsSaidAfterAClaimThatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	awaitSaid := func(times int) {
		for e, err := range w.journal.Follow(w.ctx(), 0) {
			w.must(err)
			if e.Kind == journal.RunNote {
				times--
			}
			if times == 0 {
				return
			}
		}
	}
	look := func() { w.git("worktree", "add", "-q", w.root+"-look", "muster/demo") }
	look()
	over := make(chan error, 1)
	go func() { _, err := w.land.Land(w.ctx(), one.ID, one.Fence, "", one.Owner); over <- err }()
	awaitSaid(1)
	w.must(w.land.Revoke(w.ctx(), one.ID, one.Fence))
	_, err := w.board.Revoke(w.ctx(), one.ID, one.Fence, muster.User, "too slow")
	w.must(err)
	if err := <-over; !errors.Is(err, muster.ErrFenced) {
		t.Fatal(err)
	}
	w.leave()
	look()
	ctx, stop := context.WithCancel(w.ctx())
	go func() { _, err := w.land.Land(ctx, two.ID, two.Fence, "", two.Owner); over <- err }()
	awaitSaid(2)
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
