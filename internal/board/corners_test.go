package board

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"muster"
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
	onEach(t, func(t *testing.T, w *world) {
		b := w.board()
		w.add(b, "one")
		w.add(b, "two", 1)
		w.take(b, 1, "ann")
		_, err := b.SetLane(w.ctx, 1, 1, "lane", "base")
		must(w, 0, err)
		_, err = b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})
		must(w, 0, err)
		_, err = b.Complete(w.ctx, 1, 1, Outcome{Landed: &muster.Landed{Commit: "c"}}) // nobody runs its effects
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
	})
}

// A task that another program marked as deleted stays while its landing cannot be revoked: it could still land.
func TestWhatCannotBeRevokedIsNotDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.board()
		w.add(b, "one")
		w.take(b, 1, "ann")
		broken := errors.New("git is gone")
		b.OnRevoke(func(context.Context, muster.Task) error { return broken })
		w.write("1", `{"id": 1, "subject": "one", "status": "deleted", "fence": 1}`)
		if err := b.Settle(w.ctx); !errors.Is(err, broken) {
			t.Errorf("settled with %v", err)
		}
		if w.raw("1")["status"] != "deleted" {
			t.Errorf("it is %v", w.raw("1"))
		}
		b.OnRevoke(func(context.Context, muster.Task) error { return nil })
		must(w, 0, b.Settle(w.ctx))
		if _, err := w.store.Table(muster.TableTasks).Get(w.ctx, "1"); !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// Whoever completes a task once more runs the effects that were left, and gets the task without them.
func TestCompletedOnceMoreTheEffectsAreDone(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
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
		_, err := b.SetLane(w.ctx, 1, 1, "lane", "base")
		must(w, 0, err)
		for n, want := range [][]muster.Effect{{muster.EffectArchive}, {muster.EffectArchive}, nil} {
			fails = n < 2
			done, err := b.Complete(w.ctx, 1, 1, Outcome{})
			if must(w, 0, err); !slices.Equal(done.Effects, want) {
				t.Errorf("left are %v, want %v", done.Effects, want)
			}
		}
	})
}

// No id is given twice, also when the document that counts them is damaged, and no event knows of the highest.
func TestADamagedCountIsMadeFromTheTasks(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.write("41", `{"id": 41, "subject": "of another program", "status": "pending"}`)
		w.write("meta", `{"next_id": "many"}`)
		b := w.board()
		must(w, 0, b.Settle(w.ctx))
		if got := w.add(b, "next"); got.ID != 42 {
			t.Errorf("the next task is %d", got.ID)
		}
		if next := w.raw("meta")["next_id"]; next != float64(42) {
			t.Errorf("the next id is %v", next)
		}
	})
}

// What cannot be read is listed by id, as numbers go.
func TestUnreadableTasksAreInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		for _, id := range []string{"10", "2", "9", "33"} {
			w.write(id, `{"id": "x"}`)
		}
		b := w.board()
		_, _ = b.List(w.ctx)
		var ids []muster.TaskID
		for _, u := range b.Corrupt() {
			ids = append(ids, u.ID)
		}
		if !slices.Equal(ids, []muster.TaskID{2, 9, 10, 33}) {
			t.Errorf("unreadable are %v", ids)
		}
	})
}

// A task may be tried and given up again while the mail about the first time is sent. The second time has its mail too.
func TestAnEffectThatIsNamedAgainWhileItRunsIsRunAgain(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
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
				must(w, 0, lastErr(other.Update(w.ctx, 1, Patch{Retry: true, By: muster.User})))
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
	})
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
