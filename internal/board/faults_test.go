package board

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/journal"
	"muster/store/storetest"
)

// faultyStep is a step on a board with the tasks 1 (claimed by ann), 2 (waits for 1), 3 (landing, bob's), 4 (deleted), 5
// (free) and 6 (free).
type faultyStep struct {
	do func(ctx context.Context, b *Board) error
	// last is the operation, and nth its number, after which the step has done its work. What it still looks at is a
	// precaution, and Settle does the same. "" is none.
	last string
	nth  int
	// repeated is the error of a step that is done once more after it was done, nil if it has none.
	repeated error
	isDone   func(w *world, b *Board) bool
}

// has reports what is true of a task.
func has(id muster.TaskID, f func(t muster.Task) bool) func(*world, *Board) bool {
	return func(w *world, b *Board) bool { return f(w.get(b, id)) }
}

// faultyEdits are the steps that change the graph.
func faultyEdits() map[string]faultyStep {
	return map[string]faultyStep{
		"create": {
			last: "put tasks/7", nth: 1,
			do: func(ctx context.Context, b *Board) error {
				return errOf(b.Create(ctx, Draft{Subject: "new", BlockedBy: []muster.TaskID{1, 5}}))
			},
			isDone: has(7, func(t muster.Task) bool { return slices.Equal(t.BlockedBy, []muster.TaskID{1, 5}) }),
		},
		"update": {
			last: "put tasks/meta", nth: 2,
			do: func(ctx context.Context, b *Board) error {
				return errOf(b.Update(ctx, 2, Patch{AddBlockers: []muster.TaskID{5}, RemoveBlockers: []muster.TaskID{1}}))
			},
			isDone: has(2, func(t muster.Task) bool { return slices.Equal(t.DependsOn, []muster.TaskID{5}) }),
		},
		"delete": {
			do:       func(ctx context.Context, b *Board) error { return b.Delete(ctx, 1, true) },
			repeated: muster.ErrNotFound,
			isDone: func(w *world, b *Board) bool {
				_, err := b.Get(w.ctx, 1)
				return errors.Is(err, muster.ErrNotFound) && len(w.get(b, 2).DependsOn) == 0
			},
		},
		"settle": {
			do:     func(ctx context.Context, b *Board) error { return b.Settle(ctx) },
			isDone: has(5, func(t muster.Task) bool { return t.Status == muster.Pending }),
		},
	}
}

// faultyClaims are the steps in the life of a claim.
func faultyClaims() map[string]faultyStep {
	return map[string]faultyStep{
		"claim": {
			do:       func(ctx context.Context, b *Board) error { return errOf(b.Claim(ctx, 5, Claim{Owner: "eve"})) },
			repeated: muster.ErrHeld,
			isDone:   has(5, func(t muster.Task) bool { return t.Owner == "eve" && t.Fence == 1 }),
		},
		"claim what waits": { // a blocker that the store does not show is neither completed nor unfinished
			last: "get tasks/1", nth: 1,
			do: func(ctx context.Context, b *Board) error {
				if err := errOf(b.Claim(ctx, 2, Claim{Owner: "eve"})); !errors.Is(err, muster.ErrInvalid) {
					return err
				}
				return nil
			},
			isDone: has(2, func(t muster.Task) bool { return t.Status == muster.Pending }),
		},
		"claim the next": {
			do: func(ctx context.Context, b *Board) error {
				t, ok, err := b.ClaimNext(ctx, Claim{Owner: "eve"})
				if ok != (t.ID != 0) || err == nil && !ok {
					return errors.New("whether there was a task is not clear")
				}
				return err
			},
			isDone: has(5, func(t muster.Task) bool { return t.Owner == "eve" && t.ClaimSource == muster.SourceAuto }),
		},
		"release": {
			do: func(ctx context.Context, b *Board) error {
				return errOf(b.Release(ctx, 1, 1, Release{Reason: "cannot", Counts: true}))
			},
			isDone: has(1, func(t muster.Task) bool { return t.Status == muster.Pending && t.Attempts == 1 }),
		},
		"revoke": {
			do:       func(ctx context.Context, b *Board) error { return errOf(b.Revoke(ctx, 1, 1, muster.Lead, "late")) },
			repeated: muster.ErrFenced, isDone: has(1, func(t muster.Task) bool { return t.Owner == "" && t.Fence == 2 }),
		},
		"return": {
			do:       func(ctx context.Context, b *Board) error { return errOf(b.Return(ctx, 3, 1, "check", Details{})) },
			repeated: muster.ErrInvalid,
			isDone:   has(3, func(t muster.Task) bool { return t.Status == muster.InProgress && t.Returns == 1 }),
		},
		"complete": {
			do: func(ctx context.Context, b *Board) error {
				return errOf(b.Complete(ctx, 1, 1, Outcome{Result: "done"}))
			},
			isDone: func(w *world, b *Board) bool {
				return w.get(b, 1).Status == muster.Completed && len(w.get(b, 2).BlockedBy) == 0
			},
		},
		"set the lane": {
			do:     func(ctx context.Context, b *Board) error { return errOf(b.SetLane(ctx, 1, 1, "lane", "base")) },
			isDone: has(1, func(t muster.Task) bool { return t.Worktree == "lane" && t.Base == "base" }),
		},
		"forget a lane": {
			do: func(ctx context.Context, b *Board) error {
				return b.ForgetLane(ctx, muster.Lane{Name: "lane", TaskID: 5})
			},
			isDone: has(5, func(t muster.Task) bool { return t.Worktree == "" }),
		},
		"begin to land": {
			do: func(ctx context.Context, b *Board) error {
				return errOf(b.BeginLanding(ctx, 1, 1, muster.PendingLanding{Head: "h"}))
			},
			isDone: has(1, func(t muster.Task) bool { return t.Status == muster.Landing && t.Landing.Head == "h" }),
		},
	}
}

// A failure of the store is the error of the step in which it comes. What the step left undone is done when it is
// repeated, or by Settle, whoever had begun.
func TestNoFailureIsHidden(t *testing.T) {
	steps := faultyEdits()
	maps.Copy(steps, faultyClaims())
	for name, c := range steps {
		t.Run(name, func(t *testing.T) {
			seen := 0
			isCounted := func(op string) bool {
				isOver := c.nth > 0 && seen == c.nth
				if op == c.last {
					seen++
				}
				return strings.Contains(op, " tasks") && !isOver
			}
			storetest.FailEach(t, isCounted, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
				seen = 0
				w := inMemory(t)
				w.fillForFaults()
				faulty := wrap(w.open())
				b := w.board()
				err := c.do(w.ctx, New(faulty, journal.New(faulty.Log())))
				if err != nil {
					if again := c.do(w.ctx, b); again != nil && (c.repeated == nil || !errors.Is(again, c.repeated)) {
						t.Errorf("after %v, the second time: %v", err, again)
					}
				}
				if err := b.Settle(w.ctx); err != nil {
					t.Error(err)
				}
				if !c.isDone(w, b) {
					t.Errorf("it is not done, with the error %v", err)
				}
				return err
			})
		})
	}
}

// Who completes a task once more, and cannot do what was left, is told so. The next one does it.
func TestNoFailureIsHiddenFromWhoCompletesAgain(t *testing.T) {
	isTask := func(op string) bool { return strings.Contains(op, " tasks/") }
	complete := func(w *world, b *Board) error { return errOf(withHandlers(b).Complete(w.ctx, 1, 1, Outcome{})) }
	storetest.FailEach(t, isTask, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		w := inMemory(t)
		w.fillForFaults()
		must(w, 0, errOf(w.board().Complete(w.ctx, 1, 1, Outcome{}))) // nobody is told there
		faulty := wrap(w.open())
		err := complete(w, New(faulty, journal.New(faulty.Log())))
		must(w, 0, complete(w, w.board()))
		if left := w.get(w.board(), 1).Effects; len(left) != 0 {
			t.Errorf("after %v there are left %v", err, left)
		}
		return err
	})
}

// A board that cannot be read is not an empty one.
func TestNoFailedReadIsHidden(t *testing.T) {
	for name, read := range map[string]func(ctx context.Context, b *Board) error{
		"with blocks": func(ctx context.Context, b *Board) error { return errOf(b.WithBlocks(ctx, muster.Task{ID: 1})) },
		"list":        func(ctx context.Context, b *Board) error { return errOf(b.List(ctx)) },
		"ready":       func(ctx context.Context, b *Board) error { return errOf(b.Ready(ctx, "", false)) },
		"claimed":     func(ctx context.Context, b *Board) error { return errOf(b.Claimed(ctx)) },
		"get":         func(ctx context.Context, b *Board) error { return errOf(b.Get(ctx, 1)) },
		"check":       func(ctx context.Context, b *Board) error { return errOf(b.Check(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			isRead := func(op string) bool { return strings.Contains(op, " tasks") }
			storetest.FailEach(t, isRead, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
				w := inMemory(t)
				w.fillForFaults()
				faulty := wrap(w.open())
				return read(w.ctx, New(faulty, journal.New(faulty.Log())))
			})
		})
	}
}

// An event that cannot be written is reported, and undoes nothing.
func TestNoLostEventIsHidden(t *testing.T) {
	steps := faultyEdits()
	maps.Copy(steps, faultyClaims())
	for _, silent := range []string{"settle", "set the lane", "forget a lane", "claim what waits"} {
		delete(steps, silent)
	}
	for name, c := range steps {
		t.Run(name, func(t *testing.T) {
			isEvent := func(op string) bool { return strings.HasPrefix(op, "append ") } // of the journal and of the claims
			storetest.FailEach(t, isEvent, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
				w := inMemory(t)
				w.fillForFaults()
				faulty := wrap(w.open())
				err := c.do(w.ctx, New(faulty, journal.New(faulty.Log())))
				if !c.isDone(w, w.board()) {
					t.Errorf("it is not done, with the error %v", err)
				}
				return err
			})
		})
	}
}

// fillForFaults makes the tasks of faultyStep.
func (w *world) fillForFaults() {
	w.Helper()
	b := w.board()
	w.add(b, "one")
	w.add(b, "two", 1)
	w.add(b, "three")
	w.add(b, "four")
	w.add(b, "five")
	w.add(b, "six")
	w.take(b, 1, "ann")
	w.take(b, 3, "bob")
	t, err := b.BeginLanding(w.ctx, 3, 1, muster.PendingLanding{Head: "h"})
	must(w, t, err)
	if err := b.Delete(w.ctx, 4, true); err != nil {
		w.Fatalf("%v", err)
	}
}
