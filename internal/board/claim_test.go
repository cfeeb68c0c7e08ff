package board

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/journal"
)

// A claim says how it came about; one that was not said to be automatic was made by hand.
func TestAClaimSaysHowItCameAbout(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	for source, want := range map[string]string{"": muster.SourceManual, muster.SourceAuto: muster.SourceAuto} {
		id := w.add(b, "x").ID
		c, err := b.Claim(w.ctx, id, Claim{Owner: "ann", Source: source})
		if must(w, c, err); c.ClaimSource != want || w.lines()[len(w.lines())-1]["source"] != want {
			t.Errorf("%q became %q, and in the log %v", source, c.ClaimSource, w.lines())
		}
	}
}

// A refusal names five of the unfinished blockers and counts the others.
func TestARefusedClaimNamesFiveBlockers(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	var on []muster.TaskID
	for range 7 {
		on = append(on, w.add(b, "x").ID)
	}
	for n, more := range map[int]string{1: "", 5: "", 6: ", 1 more", 7: ", 2 more"} {
		id := w.add(b, "waits", on[:n]...).ID
		want := fmt.Sprintf("task %d waits for 1 (pending)", id)
		for i := 2; i <= min(n, 5); i++ {
			want += fmt.Sprintf(", %d (pending)", i)
		}
		_, err := b.Claim(w.ctx, id, Claim{Owner: "ann"})
		w.refused(err, muster.Invalid, want+more)
	}
}

// A task of which another program wrote a status of its own is nobody's to claim.
func TestAnUnknownStatusIsRefused(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "a", "status": "blocked"}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "needs_attention"}`)
	_, err := w.board().Claim(w.ctx, 1, Claim{Owner: "ann"})
	w.refused(err, muster.Invalid, `task 1 has the status "blocked", which is none of ours`)
	_, err = w.board().Claim(w.ctx, 2, Claim{Owner: "ann"})
	w.refused(err, muster.Invalid, "task 2 needs attention")
}

// Only the holder of the fence binds a task to a lane, and nobody does once it is completed.
func TestALaneIsSetByTheHolderOfTheFence(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	w.take(b, 1, "ann")
	for _, c := range [][2]string{{"lane", "base"}, {"lane", "new"}, {"other", "new"}} {
		got, err := b.SetLane(w.ctx, 1, 1, muster.Name(c[0]), c[1])
		if must(w, got, err); string(got.Worktree) != c[0] || got.Base != c[1] || w.get(b, 1).Base != c[1] {
			t.Errorf("%v: %+v", c, got)
		}
	}
	for _, late := range []int{0, 2} {
		w.refused(lastErr(b.SetLane(w.ctx, 1, late, "late", "late")), muster.Fenced, "")
	}
	must(w, 0, lastErr(b.Complete(w.ctx, 1, 1, Outcome{})))
	w.refused(lastErr(b.SetLane(w.ctx, 1, 1, "late", "late")), muster.Fenced, "")
	if got := w.get(b, 1); got.Worktree != "other" {
		t.Errorf("%+v", got)
	}
}

// Who gives a task back is named when it is not the owner, and it is told once.
func TestAReleaseNamesWhoGaveTheTaskBack(t *testing.T) {
	for by, want := range map[muster.Name]any{"": nil, "ann": nil, muster.Lead: "lead"} {
		w := inMemory(t)
		b := w.board()
		w.add(b, "one")
		w.take(b, 1, "ann")
		must(w, 0, lastErr(b.Release(w.ctx, 1, 1, Release{Reason: "no", By: by})))
		must(w, 0, lastErr(b.Release(w.ctx, 1, 1, Release{Reason: "no", By: by})))
		e := w.events(journal.TaskReleased)
		if len(e) != 1 || e[0].Member != "ann" || e[0].Fields["by"] != want || e[0].Text("reason") != "no" {
			t.Errorf("by %q: %+v", by, e)
		}
	}
}

// A claim that is over gives nothing back, also when nobody has the task now; nor does who never had it.
func TestALateReleaseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		task  muster.Task
		fence int
	}{
		"never claimed":     {muster.Task{Status: muster.Pending}, 0},
		"an earlier claim":  {muster.Task{Status: muster.Pending, Fence: 2}, 1},
		"set aside":         {muster.Task{Status: muster.NeedsAttention, Fence: 2}, 1},
		"set aside since":   {muster.Task{Status: muster.NeedsAttention, Fence: 2}, 2},
		"completed":         {muster.Task{Status: muster.Completed, Fence: 2}, 2},
		"left with a name":  {muster.Task{Status: muster.Pending, Owner: "ann", Fence: 2}, 2},
		"somebody else has": {muster.Task{Status: muster.InProgress, Owner: "bob", Fence: 3}, 2},
	} {
		w := &world{failer: t}
		was := c.task
		w.refused(release(&c.task, c.fence, Release{Counts: true, Note: "n"}, 7), muster.Fenced, "")
		if d := cmp.Diff(was, c.task); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Who is told that a claim is over is told what has become of the task.
func TestALateOwnerIsToldWhatBecameOfTheTask(t *testing.T) {
	at := now()
	clock := muster.Time(at).Format("15:04")
	for want, task := range map[string]muster.Task{
		"bob completed it at " + clock: {Status: muster.Completed, CompletedBy: "bob", Owner: "bob", UpdatedAt: at},
		"it is completed":              {Status: muster.Completed, Owner: "bob", UpdatedAt: at},
		"it was set aside at " + clock + ": no good": {Status: muster.NeedsAttention, UpdatedAt: at, Result: "no good",
			CompletedBy: "left over"},
		"bob claimed it at " + clock: {Status: muster.InProgress, Owner: "bob", ClaimedAt: at, UpdatedAt: 1,
			CompletedBy: "left over"},
		"it went back to the board at " + clock: {Status: muster.Pending, UpdatedAt: at},
	} {
		task.ID = 7
		(&world{failer: t}).refused(errClaimLost(task), muster.Fenced, "task 7 is no longer yours: "+want)
	}
}

// An owner who completes its task by hand may complete it again with its fence. When somebody else did, it is refused.
func TestCompletionByHandByTheOwnerAndByOthers(t *testing.T) {
	for by, want := range map[muster.Name]error{"ann": nil, muster.User: muster.ErrFenced} {
		w := inMemory(t)
		b := withHandlers(w.board())
		w.add(b, "one")
		w.take(b, 1, "ann")
		must(w, 0, lastErr(b.CompleteByHand(w.ctx, 1, by, "by hand")))
		err := lastErr(b.Complete(w.ctx, 1, 1, Outcome{Result: "late"}))
		if want == nil {
			must(w, 0, err)
		} else {
			w.refused(err, muster.Fenced, "")
		}
		if got := w.get(b, 1); got.Result != "by hand" || got.CompletedBy != by {
			t.Errorf("%+v", got)
		}
	}
}

// A completed task is told as of its owner, or of who completed it if nobody had it. A name that nobody can have
// completes nothing.
func TestWhoCompletedATaskThatNobodyHad(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	w.refused(lastErr(b.CompleteByHand(w.ctx, 1, "Bob Smith", "")), muster.Invalid, "")
	must(w, 0, lastErr(b.CompleteByHand(w.ctx, 1, muster.User, "")))
	if e := w.events(journal.TaskCompleted); len(e) != 1 || e[0].Member != muster.User || len(w.lines()) != 1 ||
		w.lines()[0]["owner"] != "user" {
		t.Errorf("%+v, %v", e, w.lines())
	}
}

// What an earlier life of a task left in it is gone when it is claimed.
func TestAClaimBeginsAnew(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "opened again", "status": "pending", "blockedBy": [], "result": "done", "completed_by": "zoe",
		"landed": {"commit": "abc"}, "landing": {"head": "h"}, "effects": ["tell"], "note": "see the log", "worktree": "lane"}`)
	c := w.take(w.board(), 1, "ann")
	if c.Result != "" || c.CompletedBy != "" || c.Landed != nil || c.Landing != nil || len(c.Effects) != 0 ||
		c.Note != "see the log" || c.Worktree != "lane" {
		t.Errorf("%+v", c)
	}
}
