package board

import (
	"fmt"
	"testing"

	"muster"
)

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
	w.write("100", `{"id": 100, "subject": "other programs take it for ready", "blockedBy": [], "dependsOn": [1]}`)
	w.refused(errOf(b.Claim(w.ctx, 100, Claim{Owner: "ann"})), muster.Invalid, "task 100 waits for 1 (pending)")
	if got := w.get(b, 100); len(got.BlockedBy) != 1 {
		t.Errorf("%+v", got)
	}
}

// A task of which another program wrote a status of its own is nobody's to claim.
func TestAnUnknownStatusIsRefused(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "a", "status": "blocked"}`)
	w.write("2", `{"id": 2, "subject": "b", "status": "needs_attention"}`)
	w.refused(errOf(w.board().Claim(w.ctx, 1, Claim{Owner: "ann"})), muster.Invalid, `task 1 has the status "blocked", which is none of ours`)
	w.refused(errOf(w.board().Claim(w.ctx, 2, Claim{Owner: "ann"})), muster.Invalid, "task 2 needs you")
}

// Only the holder of the fence binds a task to a lane, and nobody does once it is completed.
func TestALaneIsSetByTheHolderOfTheFence(t *testing.T) {
	w := inMemory(t)
	b := withHandlers(w.board())
	w.add(b, "one")
	must(w, 0, errOf(b.SetLane(w.ctx, 1, 0, "nobody's-yet", "base"))) // its next owner gets it
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

// Why a task came back is forgotten with its completion.
func TestACompletionForgetsReturns(t *testing.T) {
	back := muster.Task{Status: muster.InProgress, Returned: "check", Met: []string{"c"}, Returns: 1, Rounds: 2}
	if err := complete(&back, 0, Outcome{}, 3); err != nil || back.Returned != "" || back.Met != nil ||
		back.Returns != 0 || back.Rounds != 0 {
		t.Errorf("completed, it says of its returns: %+v, %v", back, err)
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

// What an earlier life of a task left in it is gone when it is claimed.
func TestAClaimBeginsAnew(t *testing.T) {
	w := inMemory(t)
	w.write("1", `{"id": 1, "subject": "opened again", "status": "pending", "result": "done", "completed_by": "zoe",
		"blockedBy": [7], "dependsOn": [],
		"landed": {"commit": "abc"}, "landing": {"head": "h"}, "effects": ["tell"], "note": "see the log", "worktree": "lane"}`)
	c := w.take(w.board(), 1, "ann")
	if c.Result != "" || len(c.BlockedBy) != 0 || c.CompletedBy != "" || c.Landed != nil || c.Landing != nil ||
		len(c.Effects) != 0 || c.Note != "see the log" || c.Worktree != "lane" {
		t.Errorf("%+v", c)
	}
}
