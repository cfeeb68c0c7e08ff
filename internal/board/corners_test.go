package board

import (
	"context"
	"slices"
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
	w.write("1", `{"id": 1, "subject": "one", "status": "completed", "completed_by": "zoe", "effects": ["tell"],
		"files": ["a"], "landing": {"head": "h"}, "landed": {"commit": "c"}}`)
	w.add(b, "two", 1)
	spoil := func(t muster.Task) {
		for _, list := range [][]muster.TaskID{t.DependsOn, t.BlockedBy, t.Blocks} {
			for i := range list {
				list[i] = 99
			}
		}
		if t.ID == 1 {
			t.Effects[0], t.Files[0], t.Landing.Head, t.Landed.Commit = "spoilt", "spoilt", "spoilt", "spoilt"
		}
	}
	for range 2 {
		all, err := b.List(w.ctx)
		must(w, 0, err)
		if len(all) != 2 || all[0].Effects[0] != "tell" || all[0].Files[0] != "a" || all[0].Landing.Head != "h" ||
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

// Many tasks that become ready, stop being so, and become ready again before anybody asks are listed once each. Those
// that were claimed meanwhile are not.
func TestReadyTasksThatMovedTwiceAreListedOnce(t *testing.T) {
	g := newGraph()
	var want []muster.TaskID
	for id := muster.TaskID(1); id <= 100; id++ {
		g.onChange(state.Change[muster.Task]{Key: key(id), New: &muster.Task{ID: id, Status: muster.Pending}})
		g.setReady(g.tasks[id], false)
		g.setReady(g.tasks[id], true)
		if want = append(want, id); id%3 == 0 {
			want = want[:len(want)-1]
			g.onChange(state.Change[muster.Task]{Key: key(id), New: &muster.Task{ID: id, Status: muster.InProgress}})
		}
	}
	if got := slices.Collect(g.readyFor("", false)); !slices.Equal(got, want) {
		t.Errorf("ready are %v", got)
	}
}
