package board

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/journal"
	"muster/store/storetest"
)

// fillForRepair writes a board that needs every repair of Settle. The process b has seen the task 10, which is gone.
func (w *world) fillForRepair(b *Board) error {
	w.Helper()
	for key, data := range map[string]string{
		"1":  `{"id": 1, "subject": "completed by another program", "status": "completed", "landed": {"commit": "c"}}`,
		"2":  `{"id": 2, "subject": "waits for it", "dependsOn": [1], "blockedBy": [1]}`,
		"3":  `{"id": 3, "subject": "nobody has it", "status": "in_progress", "fence": 1}`,
		"4":  `{"id": 4, "subject": "marked", "status": "deleted", "fence": 1}`,
		"5":  `{"id": 5, "subject": "waits for the marked one", "dependsOn": [4], "blockedBy": [4]}`,
		"6":  `{"id": 6, "subject": "a cycle", "dependsOn": [7], "blockedBy": [7]}`,
		"7":  `{"id": 7, "subject": "a cycle", "dependsOn": [6], "blockedBy": [6]}`,
		"9":  `{"id": 9, "subject": "waits for one that is gone", "dependsOn": [10], "blockedBy": [10]}`,
		"10": `{"id": 10, "subject": "gone"}`,
		"11": `{"id": 11, "subject": "blockedBy is wrong", "dependsOn": [13], "blockedBy": []}`,
		"13": `{"id": 13, "subject": "whole"}`,
		"12": `{"id": 12, "subject": "an edge to it is announced"}`,
	} {
		w.write(key, data)
	}
	if err := b.tasks.Refresh(w.ctx); err != nil {
		return err
	}
	table := w.store.Table(muster.TableTasks)
	doc, err := table.Get(w.ctx, "10")
	must(w, doc, err)
	must(w, 0, table.Delete(w.ctx, "10", doc.Rev))
	w.write("meta", `{"edges": 1, "adding": [{"n": 1, "id": 12, "on": [11]}]}`)
	return nil
}

// checkRepaired checks what is to become of the tasks of fillForRepair.
func (w *world) checkRepaired(when error) {
	w.Helper()
	all := w.stored()
	is := map[muster.TaskID]bool{
		1: all[1].CompletedBy == muster.System && all[1].Landed == nil, 2: len(all[2].BlockedBy) == 0,
		3: all[3].Status == muster.Pending && all[3].Fence == 2,
		5: len(all[5].DependsOn) == 0, 7: all[7].Status == muster.NeedsAttention,
		6: all[6].Status == muster.NeedsAttention && all[6].Result == "waits for itself: 7 -> 6 -> 7",
		9: len(all[9].DependsOn) == 0, 11: slices.Equal(all[11].BlockedBy, []muster.TaskID{13}),
		13: all[13].Status == muster.Pending,
		12: slices.Equal(all[12].BlockedBy, []muster.TaskID{11}),
	}
	for id, ok := range is {
		if t, there := all[id]; !ok || !there || len(t.Effects) > 0 {
			w.Errorf("after %v: task %d is %+v", when, id, t)
		}
	}
	if _, there := all[4]; there || len(all) != len(is) {
		w.Errorf("after %v: the tasks are %+v", when, all)
	}
	for kind, want := range map[string]int{journal.TaskForeign: 2, journal.TaskAttention: 2, journal.TaskDeleted: 1,
		journal.TaskEdgeRemoved: 2} {
		if e := w.events(kind); when == nil && len(e) != want {
			w.Errorf("told: %+v, want %d %s", e, want, kind)
		}
	}
}

// Whatever fails while a board is settled is the error of Settle. The next one, in the same process, does what is left.
func TestSettleHidesNoFailure(t *testing.T) {
	isPart := func(op string) bool {
		// To look once more at a blocker is a precaution. An edge to one that is gone is dropped later, and one that may
		// be completed stays in blockedBy until it is known to be.
		return op != "get tasks/11" && op != "get tasks/13" && (strings.Contains(op, " tasks") || op == "append "+muster.StreamEvents)
	}
	storetest.FailEach(t, isPart, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
		w := inMemory(t)
		faulty := wrap(w.open())
		b := withHandlers(New(faulty, journal.New(faulty.Log())))
		b.OnRevoke(func(context.Context, muster.Task) error { return nil })
		if err := w.fillForRepair(b); err != nil {
			return err
		}
		err := b.Settle(w.ctx)
		if err != nil {
			must(w, 0, b.Settle(w.ctx))
		}
		w.checkRepaired(err)
		return err
	})
}

// errNoGit is the error of a revocation.
var errNoGit = errors.New("git is gone")

// One task that cannot be repaired keeps no other from it. It is tried again. A task that is marked as deleted stays
// until its landing is revoked.
func TestSettleGoesOnPastWhatFails(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	for _, id := range []string{"1", "2", "3"} {
		w.write(id, `{"id": `+id+`, "subject": "nobody has it", "status": "in_progress", "fence": 1}`)
	}
	w.write("4", `{"id": 4, "subject": "marked, and could still land", "status": "deleted", "fence": 1}`)
	fails := true
	b.OnRevoke(func(_ context.Context, t muster.Task) error {
		if fails && t.ID != 3 {
			return errNoGit
		}
		return nil
	})
	for _, want := range []muster.TaskStatus{muster.InProgress, muster.Pending} {
		err := b.Settle(w.ctx)
		if errors.Is(err, errNoGit) != fails || fails && strings.Count(err.Error(), errNoGit.Error()) != 3 {
			t.Errorf("settled with %v", err)
		}
		for id, is := range map[muster.TaskID]muster.TaskStatus{1: want, 2: want, 3: muster.Pending} {
			if got := w.get(b, id); got.Status != is {
				t.Errorf("task %d is %s, not %s", id, got.Status, is)
			}
		}
		if _, err := w.store.Table(muster.TableTasks).Get(w.ctx, "4"); errors.Is(err, muster.ErrNotFound) == fails {
			t.Errorf("the marked task: %v", err)
		}
		fails = false
	}
}

// While nothing can be written, or when its context ends, Settle stops at the first task instead of failing at each.
func TestSettleStopsWhenNothingCanBeDone(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "a", "status": "in_progress", "fence": 1}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "in_progress", "fence": 1}`)
	s := &mortal{Store: w.open(), left: 1}
	err := New(s, journal.New(s.Log())).Settle(w.ctx)
	if !errors.Is(err, errDead) || strings.Count(err.Error(), "dead") != 1 {
		t.Errorf("settled with %v", err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	revoked := 0
	b := w.board()
	b.OnRevoke(func(context.Context, muster.Task) error { revoked++; cancel(); return errNoGit })
	if err := b.Settle(ctx); !errors.Is(err, errNoGit) || revoked != 1 {
		t.Errorf("%d were tried, %v", revoked, err)
	}
}

// When its context ends while effects run, Settle runs no more of them and says why.
func TestSettleRunsNoEffectsAfterItsEnd(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	for range 3 {
		must(w, 0, errOf(b.CompleteByHand(w.ctx, w.add(b, "x").ID, muster.User, "")))
	}
	ctx, cancel := context.WithCancel(w.ctx)
	told := 0
	b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { told++; cancel(); return nil })
	if err := b.Settle(ctx); !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("told %d, %v", told, err)
	}
}

// One who waits for another Settle of the process waits no longer than its context.
func TestSettleWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b := w.board()
		must(w, 0, errOf(b.CompleteByHand(w.ctx, w.add(b, "x").ID, muster.User, "")))
		goOn, done := make(chan struct{}), make(chan error)
		b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { <-goOn; return nil })
		go func() { done <- b.Settle(w.ctx) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := b.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second one: %v", err)
		}
		close(goOn)
		must(w, 0, <-done)
	})
}

// What another program mends before Settle comes to it is left as it is then: nobody loses a claim that is whole.
func TestSettleLeavesWhatWasMended(t *testing.T) {
	const (
		broken  = `{"id": 1, "subject": "a", "status": "pending", "owner": "alice", "fence": 1}`
		whole   = `{"id": 1, "subject": "a", "status": "in_progress", "owner": "alice", "fence": 1}`
		another = `{"id": 1, "subject": "a", "status": "pending", "owner": "bob", "fence": 2}`
		marked  = `{"id": 1, "subject": "a", "status": "deleted", "fence": 1}`
		cycle   = `{"id": 1, "subject": "a", "dependsOn": [1], "blockedBy": [1]}`
		free    = `{"id": 1, "subject": "a"}`
		done    = `{"id": 1, "subject": "a", "status": "completed"}`
		told    = `{"id": 1, "subject": "a", "status": "completed", "completed_by": "system"}`
	)
	for name, c := range map[string]struct {
		is      string
		at      string // "get 1" is before anything was done, "revoke" after the landing was revoked
		becomes string
		revokes []int
	}{
		"before the revocation":        {broken, "get 1", whole, nil},
		"after the revocation":         {broken, "revoke", whole, []int{1}},
		"another claim":                {broken, "revoke", another, []int{1}},
		"the mark, at first":           {marked, "get 1", whole, nil},
		"the mark, before it is gone":  {marked, "delete 1", whole, []int{1}},
		"the mark, by another program": {marked, "revoke", whole, []int{1}},
		"a cycle":                      {cycle, "get 1", free, nil},
		"a completion":                 {done, "get 1", told, nil},
	} {
		w := inMemory(t)
		done := false
		change := func(op string) {
			if !done && op == c.at {
				done = true
				w.write("1", c.becomes)
			}
		}
		s := interrupted{w.open(), func(op, key string) { change(op + " " + key) }}
		b := New(s, journal.New(s.Log()))
		var revoked []int
		b.OnRevoke(func(_ context.Context, t muster.Task) error {
			revoked = append(revoked, t.Fence)
			change("revoke")
			return nil
		})
		w.write("1", c.is)
		must(w, 0, b.Settle(w.ctx))
		want, err := decodeTask("1", []byte(c.becomes))
		must(w, want, err)
		if d := cmp.Diff(want, w.get(b, 1)); d != "" || w.eventCount() != 0 || !slices.Equal(revoked, c.revokes) {
			t.Errorf("%s: %d events, revoked were %v: %s", name, w.eventCount(), revoked, d)
		}
	}
}

// A task that another program marked as deleted and that nobody ever had can go although nothing can be revoked. It is
// not there for anybody, from the mark on.
func TestATaskMarkedAsDeletedIsNotThere(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.write("1", `{"id": 1, "subject": "a", "status": "deleted"}`)
	b.OnRevoke(func(context.Context, muster.Task) error { return errNoGit })
	text := "b"
	for name, err := range map[string]error{
		"get": errOf(b.Get(w.ctx, 1)), "claim": errOf(b.Claim(w.ctx, 1, Claim{Owner: "ann"})),
		"update": errOf(b.Update(w.ctx, 1, Patch{Subject: &text})), "delete": b.Delete(w.ctx, 1, true),
		"lane": errOf(b.SetLane(w.ctx, 1, 0, "lane", "base")), "complete": errOf(b.CompleteByHand(w.ctx, 1, muster.User, "")),
		"wait for": errOf(b.Create(w.ctx, Draft{Subject: "x", BlockedBy: []muster.TaskID{1}})),
	} {
		if name == "wait for" {
			w.refused(err, muster.Invalid, "there is no task 1 to wait for")
		} else {
			w.refused(err, muster.NotFound, "there is no task 1")
		}
	}
	must(w, 0, b.Settle(w.ctx))
	if _, there := w.stored()[1]; there {
		t.Error("it is still there")
	}
}

// A blocker that nobody has seen may still come while its id is free. Once the id is retired it never does.
func TestABlockerMayComeWhileItsIDIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b := w.board()
		w.write("1", `{"id": 1, "subject": "a", "blockedBy": [2]}`)
		for _, c := range []struct {
			meta string
			want []muster.TaskID
		}{{`{"next_id": 2}`, []muster.TaskID{2}}, {`{"next_id": 3}`, []muster.TaskID{}}} {
			w.write("meta", c.meta)
			must(w, 0, b.Settle(w.ctx))
			time.Sleep(missingFor)
			must(w, 0, b.Settle(w.ctx))
			if got := w.get(b, 1); !slices.Equal(got.DependsOn, c.want) {
				t.Errorf("with %s it waits for %v", c.meta, got.DependsOn)
			}
		}
		w.write("3", `{"id": 3, "subject": "c", "blockedBy": [2]}`)
		another := w.board() // which sees for the first time that the blocker is missing
		must(w, 0, another.Settle(w.ctx))
		if got := w.get(b, 3); !slices.Equal(got.DependsOn, []muster.TaskID{2}) {
			t.Errorf("at once it waits for %v", got.DependsOn)
		}
		w.write("4", `{"id": 4, "subject": "d", "blockedBy": [5]}`)
		w.write("1000000000000", `{"id": 1000000000000, "subject": "no number is left after it"}`)
		next, err := UnusedID(w.ctx, another)
		if got := w.add(another, "e"); got.ID != 6 || next != 6 || err != nil {
			t.Errorf("the id of the task that is waited for was given to %+v", got)
		}
	})
}

// What another program writes while Settle mends the task is seen to by the next one.
func TestSettleSeesWhatCameDuringIt(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "a"}`)
	w.write("2", `{"id": 2, "subject": "b", "dependsOn": [1], "blockedBy": []}`)
	var b *Board
	b = withHandlers(w.interruptedBoard(at("put", "2"), func() {
		w.write("2", `{"id": 2, "subject": "b", "dependsOn": [1], "blockedBy": [1], "status": "completed"}`)
		must(w, 0, b.tasks.Refresh(w.ctx))
	}))
	for range 2 {
		must(w, 0, b.Settle(w.ctx))
	}
	if got := w.get(b, 2); got.CompletedBy != muster.System {
		t.Errorf("%+v", got)
	}
}

// Check finds what the next Settle would mend, and changes nothing.
func TestCheckFindsWhatSettleMends(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.write("1", `{"id": 1, "subject": "a", "status": "pending"}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "pending", "dependsOn": [1], "blockedBy": [1, 1]}`)
	w.write("3", `{"id": 3, "subject": "c", "status": "pending", "dependsOn": [1], "blockedBy": []}`)
	w.write("4", `{"id": 4, "subject": "d", "status": "completed", "completed_by": "ann", "worktree": "lane", "effects": ["tell"]}`)
	before := w.stored()
	got, err := b.Check(w.ctx)
	want := []Finding{{Task: 3, Text: "its field blockedBy has [], and should have [1]"},
		{Task: 4, Text: "what follows its completion was not done: [tell]", Lane: "lane"}}
	if d := cmp.Diff(want, got); err != nil || d != "" || cmp.Diff(before, w.stored()) != "" {
		t.Errorf("%v: %s", err, d)
	}
	if all, err := b.List(w.ctx); err != nil || !slices.Equal(all[2].BlockedBy, []muster.TaskID{1}) {
		t.Errorf("listed before it is mended: %+v, %v", all, err)
	}
	must(w, 0, b.Settle(w.ctx))
	if got, err := b.Check(w.ctx); err != nil || len(got) != 0 {
		t.Errorf("after Settle: %v, %v", got, err)
	}
}
