package board

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

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
		w.refused(errOf(b.Claim(w.ctx, id, Claim{Owner: "ann"})), muster.Invalid, want+more)
	}
	w.write("99", `{"id": 99, "subject": "x", "blockedBy": [98]}`)
	w.refused(errOf(b.Claim(w.ctx, 99, Claim{Owner: "ann"})), muster.Invalid, "task 99 waits for 98, which does not exist")
}

// A task of which another program wrote a status of its own is nobody's to claim.
func TestAnUnknownStatusIsRefused(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "a", "status": "blocked"}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "needs_attention"}`)
	w.refused(errOf(w.board().Claim(w.ctx, 1, Claim{Owner: "ann"})), muster.Invalid, `task 1 has the status "blocked", which is none of ours`)
	w.refused(errOf(w.board().Claim(w.ctx, 2, Claim{Owner: "ann"})), muster.Invalid, "task 2 needs attention")
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
		w.refused(errOf(b.SetLane(w.ctx, 1, late, "late", "late")), muster.Fenced, "")
	}
	must(w, 0, errOf(b.Complete(w.ctx, 1, 1, Outcome{})))
	w.refused(errOf(b.SetLane(w.ctx, 1, 1, "late", "late")), muster.Fenced, "")
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
		must(w, 0, errOf(b.Release(w.ctx, 1, 1, Release{Reason: "no", By: by})))
		must(w, 0, errOf(b.Release(w.ctx, 1, 1, Release{Reason: "no", By: by})))
		e := w.events(journal.TaskReleased)
		if len(e) != 1 || e[0].Member != "ann" || e[0].Fields["by"] != want || e[0].Text("reason") != "no" {
			t.Errorf("by %q: %+v", by, e)
		}
	}
}

// An owner who completes its task by hand may complete it again with its fence. When somebody else did, it is refused.
func TestCompletionByHandByTheOwnerAndByOthers(t *testing.T) {
	for by, want := range map[muster.Name]error{"ann": nil, muster.User: muster.ErrFenced} {
		w := inMemory(t)
		b := withHandlers(w.board())
		w.add(b, "one")
		w.take(b, 1, "ann")
		must(w, 0, errOf(b.CompleteByHand(w.ctx, 1, by, "by hand")))
		err := errOf(b.Complete(w.ctx, 1, 1, Outcome{Result: "late"}))
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
	w.refused(errOf(b.CompleteByHand(w.ctx, 1, "Bob Smith", "")), muster.Invalid, "")
	must(w, 0, errOf(b.CompleteByHand(w.ctx, 1, muster.User, "")))
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

// What each verb makes of each status when it is done by the holder of the fence, written down as a table beside the
// functions that do it. A verb that is not there is refused.
var moves = map[string]map[muster.TaskStatus]muster.TaskStatus{
	"claim":         {muster.Pending: muster.InProgress},
	"release":       {muster.InProgress: muster.Pending, muster.Landing: muster.Pending},
	"revoke":        {muster.InProgress: muster.Pending, muster.Landing: muster.Pending},
	"land":          {muster.InProgress: muster.Landing, muster.Landing: muster.Landing},
	"return":        {muster.Landing: muster.InProgress},
	"complete":      {muster.InProgress: muster.Completed, muster.Landing: muster.Completed},
	"finish":        {muster.Pending: muster.Completed, muster.InProgress: muster.Completed, muster.NeedsAttention: muster.Completed},
	"acceptForeign": {},
	"retry":         {muster.Pending: muster.Pending, muster.NeedsAttention: muster.Pending},
}

// third are the verbs that give a task up when it was the third time.
var third = map[string]bool{"release": true, "return": true}

func TestStatusFollowsTheTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		task := muster.Task{ID: 1, Status: muster.Pending}
		at := 1714567890.0
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			at++
			verb := rapid.SampledFrom([]string{"claim", "claim", "release", "revoke", "land", "land", "return", "complete", "finish", "acceptForeign", "retry"}).Draw(r, "verb")
			fence := task.Fence - rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(r, "late by")
			was := task
			err := map[string]func() error{
				"claim":         func() error { return claim(&task, Claim{Owner: "alice"}, at) },
				"release":       func() error { return release(&task, fence, Release{Counts: true, Reason: "r"}, at) },
				"revoke":        func() error { return revoke(&task, fence, at) },
				"land":          func() error { return beginLanding(&task, fence, muster.PendingLanding{Head: "h"}, at) },
				"return":        func() error { return returnToOwner(&task, fence, "check", Details{}, at) },
				"complete":      func() error { return complete(&task, fence, Outcome{}, at) },
				"finish":        func() error { return finish(&task, Outcome{By: muster.User}, at) },
				"acceptForeign": func() error { return acceptForeign(&task, at) },
				"retry":         func() error { return retry(&task, at) },
			}[verb]()
			fenced := verb == "release" || verb == "revoke" || verb == "land" || verb == "return" || verb == "complete"
			to, may := moves[verb][was.Status]
			may = may && (!fenced || fence == was.Fence)
			switch {
			case errors.Is(err, errNoChange):
				if task.Status != was.Status || task.Fence != was.Fence || may {
					r.Fatalf("%s of %s said that nothing changes: %+v", verb, was.Status, task)
				}
			case err != nil:
				var e *muster.Error
				if !errors.As(err, &e) || may {
					r.Fatalf("%s of %s at fence %d of %d: %v", verb, was.Status, fence, was.Fence, err)
				}
				if fenced && fence != was.Fence && e.Code != muster.Fenced {
					r.Fatalf("%s of %s, late: %v", verb, was.Status, err)
				}
				if task.Status != was.Status || task.Fence != was.Fence || task.Owner != was.Owner {
					r.Fatalf("%s was refused and changed %+v to %+v", verb, was, task)
				}
			case !may:
				r.Fatalf("%s of %s at fence %d of %d passed", verb, was.Status, fence, was.Fence)
			case third[verb] && task.Status == muster.NeedsAttention:
				if was.Attempts+1 < maxAttempts && was.Returns+1 < maxReturns || task.Fence != was.Fence+1 || task.Result == "" {
					r.Fatalf("%s gave up %+v: %+v", verb, was, task)
				}
			case task.Status != to:
				r.Fatalf("%s of %s made %s, not %s", verb, was.Status, task.Status, to)
			case task.UpdatedAt != at:
				r.Fatalf("%s did not say when", verb)
			}
			if verb == "claim" && err == nil && task.Fence != was.Fence+1 {
				r.Fatalf("a claim left the fence at %d", task.Fence)
			}
			if task.Attempts >= maxAttempts && task.Status == muster.Pending {
				r.Fatalf("given back %d times and still pending", task.Attempts)
			}
			if held := task.Status == muster.InProgress || task.Status == muster.Landing; held && task.Owner == "" || !held && task.Status != muster.Completed && task.Owner != "" {
				r.Fatalf("%s is %q's", task.Status, task.Owner)
			}
			tells := task.Status == muster.Completed || task.Status == muster.NeedsAttention
			if tells != (len(task.Effects) > 0) || (task.Status == muster.Landing) != (task.Landing != nil) {
				r.Fatalf("%+v", task)
			}
		}
	})
}
