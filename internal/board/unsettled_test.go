package board

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"muster"
)

// An effect that fails, with whatever code, ends neither the step that named it nor the settling of the others.
func TestAFailedEffectEndsNothing(t *testing.T) {
	w := inMemory(t)
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
		must(w, 0, errOf(b.SetLane(w.ctx, id, c.Fence, "lane", "base")))
		must(w, 0, errOf(b.Complete(w.ctx, id, c.Fence, Outcome{})))
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
}

// An effect that was done is noted, also when its process is told to stop just then.
func TestADoneEffectIsNotedAfterTheCancel(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	b.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { cancel(); return nil })
	b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { return nil })
	w.add(b, "x")
	c := w.take(b, 1, "alice")
	must(w, 0, errOf(b.SetLane(w.ctx, 1, c.Fence, "lane", "base")))
	_, _ = b.Complete(ctx, 1, c.Fence, Outcome{})
	if left := w.get(b, 1).Effects; ctx.Err() == nil || len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// Settle reads a task again before it settles its effects. Its list of tasks may be older: another goroutine of this
// process can have settled one of them meanwhile, and nobody is told twice of one thing.
func TestSettleReadsATaskAgain(t *testing.T) {
	w := inMemory(t)
	other := w.board() // settles nothing: it has no handlers
	for id := muster.TaskID(1); id <= 2; id++ {
		w.add(other, "x")
		c := w.take(other, id, "alice")
		must(w, 0, errOf(other.Complete(w.ctx, id, c.Fence, Outcome{})))
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
}

// A task that is deleted while its effects run owes nothing any more.
func TestATaskIsDeletedByItsOwnEffect(t *testing.T) {
	w := inMemory(t)
	b, other := w.board(), w.board()
	b.OnEffect(muster.EffectTell, func(_ context.Context, t muster.Task) error { return other.Delete(w.ctx, t.ID, true) })
	w.add(b, "one")
	w.take(b, 1, "ann")
	must(w, 0, errOf(b.Complete(w.ctx, 1, 1, Outcome{})))
	w.add(b, "two")
	must(w, 0, errOf(other.CompleteByHand(w.ctx, 2, muster.User, "")))
	must(w, 0, b.Settle(w.ctx))
	if left := w.stored(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// An effect that another one of this process is running is left to it, though the task owes more by now.
func TestARunningEffectIsNotRunAgainBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b := w.board()
		goOn, told, archived := make(chan struct{}), 0, 0
		b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { told++; <-goOn; return nil })
		b.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { archived++; return nil })
		w.add(b, "one")
		w.take(b, 1, "ann")
		var all sync.WaitGroup
		all.Go(func() { _, _ = b.Complete(w.ctx, 1, 1, Outcome{}) })
		synctest.Wait()
		more := w.get(b, 1)
		more.Effects = append(more.Effects, muster.EffectArchive)
		data, err := muster.Encode(more)
		w.write("1", string(must(w, data, err)))
		must(w, 0, b.Settle(w.ctx))
		close(goOn)
		all.Wait()
		if left := w.get(b, 1).Effects; told != 1 || archived != 1 || len(left) != 0 {
			t.Errorf("told %d times, archived %d times, left are %v", told, archived, left)
		}
	})
}
