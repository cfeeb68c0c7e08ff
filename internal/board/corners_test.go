package board

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/state"
)

// Documents of other programs whose keys no task can have are no tasks.
func TestKeysThatAreNoTask(t *testing.T) {
	for name, want := range map[string]muster.TaskID{"1": 1, "10": 10, "0": 0, "-1": 0, "01": 0, "+1": 0, "meta": 0,
		"": 0} {
		if id, is := idOf(name); is != (want > 0) || is && id != want {
			t.Errorf("%q is task %d: %v", name, id, is)
		}
	}
}

// What a caller does to a task that it was given changes nothing on the board.
func TestATaskThatIsGivenOutIsACopy(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.add(b, "two", 1)
	w.take(b, 1, "ann")
	must(w, 0, errOf(b.SetLane(w.ctx, 1, 1, "lane", "base")))
	must(w, 0, errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
	_, err := b.Complete(w.ctx, 1, 1, Outcome{Landed: &muster.Landed{Commit: "c"}}) // nobody runs its effects
	must(w, 0, err)
	spoil := func(t muster.Task) {
		for _, list := range [][]muster.TaskID{t.DependsOn, t.BlockedBy, t.Blocks} {
			for i := range list {
				list[i] = 99
			}
		}
		for i := range t.Effects {
			t.Effects[i] = "spoilt"
		}
		if t.Landed != nil {
			t.Landed.Commit = "spoilt"
		}
	}
	for range 2 {
		all, err := b.List(w.ctx)
		must(w, 0, err)
		if len(all) != 2 || len(all[0].Effects) == 0 || slices.Contains(all[0].Effects, "spoilt") ||
			all[0].Landed.Commit != "c" || !slices.Equal(all[0].Blocks, []muster.TaskID{2}) ||
			!slices.Equal(all[1].DependsOn, []muster.TaskID{1}) {
			t.Fatalf("the board has %+v", all)
		}
		for _, t := range all {
			spoil(t)
		}
	}
}

// Whoever completes a task once more runs the effects that were left, and gets the task without them.
func TestCompletedOnceMoreTheEffectsAreDone(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	fails := true
	b.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error {
		if fails {
			return muster.Errorf(muster.Unavailable, "no archive")
		}
		return nil
	})
	b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { return nil })
	w.add(b, "one")
	w.take(b, 1, "ann")
	must(w, 0, errOf(b.SetLane(w.ctx, 1, 1, "lane", "base")))
	for n, want := range [][]muster.Effect{{muster.EffectArchive}, {muster.EffectArchive}, nil} {
		fails = n < 2
		done, err := b.Complete(w.ctx, 1, 1, Outcome{})
		if must(w, 0, err); !slices.Equal(done.Effects, want) {
			t.Errorf("left are %v, want %v", done.Effects, want)
		}
	}
}

// A task may be tried and given up again while the mail about the first time is sent. The second time has its mail too.
func TestAnEffectThatIsNamedAgainWhileItRunsIsRunAgain(t *testing.T) {
	w := inMemory(t)
	b, other := w.board(), w.board()
	w.add(b, "hard")
	giveUp := func(b *Board) (last muster.Task) {
		for range 3 {
			c := w.take(b, 1, "ann")
			r, err := b.Release(w.ctx, 1, c.Fence, Release{Reason: "too hard", Counts: true})
			last = must(w, r, err)
		}
		return last
	}
	var told []int
	b.OnEffect(muster.EffectTell, func(_ context.Context, task muster.Task) error {
		if told = append(told, task.Fence); len(told) == 1 {
			must(w, 0, errOf(other.Update(w.ctx, 1, Patch{Retry: true, By: muster.User})))
			giveUp(other)
		}
		return nil
	})
	first := giveUp(b)
	must(w, 0, b.Settle(w.ctx))
	second := w.get(b, 1)
	if !slices.Equal(told, []int{told[0], second.Fence}) || len(second.Effects) != 0 {
		t.Fatalf("told of the fences %v; given up first as %+v, then as %+v", told, first, second)
	}
}

// A program that reads an empty board gets an empty list, not null.
func TestAnEmptyBoardIsAnEmptyList(t *testing.T) {
	w := inMemory(t)
	all, err := w.board().List(w.ctx)
	data, failed := muster.Encode(all)
	if err != nil || failed != nil || strings.TrimSpace(string(data)) != "[]" {
		t.Errorf("%s, %v, %v", data, err, failed)
	}
}

// Numbers that no document can have are refused, and the task stays as it is.
func TestATaskThatCannotBeWrittenStays(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.take(b, 1, "ann")
	w.refused(errOf(b.Complete(w.ctx, 1, 1, Outcome{Landed: &muster.Landed{Seconds: math.NaN()}})), muster.Invalid, "")
	if got := w.get(b, 1); got.Status != muster.InProgress {
		t.Errorf("%+v", got)
	}
}

// Many tasks that become ready, stop being so, and become ready again before anybody asks are listed once each.
func TestReadyTasksThatMovedTwiceAreListedOnce(t *testing.T) {
	g := newGraph()
	var want []muster.TaskID
	for id := muster.TaskID(1); id <= 100; id++ {
		want = append(want, id)
		g.onChange(state.Change[muster.Task]{Key: key(id), New: &muster.Task{ID: id, Status: muster.Pending}})
		g.setReady(g.tasks[id], false)
		g.setReady(g.tasks[id], true)
	}
	if got := slices.Collect(g.readyFor("", false)); !slices.Equal(got, want) {
		t.Errorf("ready are %v", got)
	}
}
