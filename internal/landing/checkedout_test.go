package landing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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

// leave removes the checkout in which somebody looks at the target.
func (w *world) leave() { w.git("worktree", "remove", w.root+"-look") }
