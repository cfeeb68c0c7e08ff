package board

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
)

// An effect that fails, with whatever code, ends neither the step that named it nor the settling of the others.
func TestAFailedEffectEndsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.board()
		fails, told := true, map[muster.TaskID]int{}
		b.OnEffect(muster.EffectArchive, func(_ context.Context, t muster.Task) error {
			if fails && t.ID < 3 {
				return muster.Errorf(muster.Unavailable, "no archive of %d", t.ID)
			}
			return nil
		})
		b.OnEffect(muster.EffectTell, func(_ context.Context, t muster.Task) error { told[t.ID]++; return nil })
		for id := muster.TaskID(1); id <= 3; id++ {
			w.add(b, "x")
			c := w.take(b, id, "alice")
			_, err := b.SetLane(w.ctx, id, c.Fence, "lane", "base")
			must(w, 0, err)
			_, err = b.Complete(w.ctx, id, c.Fence, Outcome{})
			must(w, 0, err)
		}
		err := b.Settle(w.ctx)
		if !OnlyUnsettled(err) || !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "no archive of 1") || !strings.Contains(err.Error(), "no archive of 2") {
			t.Fatalf("settled with %v", err)
		}
		if told[1] != 1 || told[2] != 1 || told[3] != 1 || len(w.get(b, 3).Effects) != 0 {
			t.Errorf("told %v, left %v", told, w.get(b, 3).Effects)
		}
		fails = false
		must(w, 0, b.Settle(w.ctx))
		if left := append(w.get(b, 1).Effects, w.get(b, 2).Effects...); len(left) != 0 {
			t.Errorf("left %v", left)
		}
		if err := errors.Join(err, muster.ErrCorrupt); OnlyUnsettled(err) || OnlyUnsettled(nil) {
			t.Error("more than effects")
		}
	})
}

// An effect that was done is noted, also when its process is told to stop just then.
func TestADoneEffectIsNotedAfterTheCancel(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.board()
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		b.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { cancel(); return nil })
		b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { return nil })
		w.add(b, "x")
		c := w.take(b, 1, "alice")
		_, err := b.SetLane(w.ctx, 1, c.Fence, "lane", "base")
		must(w, 0, err)
		_, _ = b.Complete(ctx, 1, c.Fence, Outcome{})
		if left := w.get(b, 1).Effects; ctx.Err() == nil || len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// Settle reads a task again before it settles its effects. Its list of tasks may be older: another goroutine of this
// process can have settled one of them meanwhile, and nobody is told twice of one thing.
func TestSettleReadsATaskAgain(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		other := w.board() // settles nothing: it has no handlers
		for id := muster.TaskID(1); id <= 2; id++ {
			w.add(other, "x")
			c := w.take(other, id, "alice")
			must(w, 0, lastErr(other.Complete(w.ctx, id, c.Fence, Outcome{})))
		}
		b, told := w.board(), map[muster.TaskID]int{}
		b.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error {
			if told[t.ID]++; t.ID == 1 {
				// The task is completed already, so this settles its effects.
				_, err := b.Complete(ctx, 2, w.get(b, 2).Fence, Outcome{})
				return err
			}
			return nil
		})
		must(w, 0, b.Settle(w.ctx))
		if told[1] != 1 || told[2] != 1 {
			t.Errorf("told %v, want once each", told)
		}
		if left := append(w.get(b, 1).Effects, w.get(b, 2).Effects...); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}
