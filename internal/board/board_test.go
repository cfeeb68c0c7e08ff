package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/journal"
)

func TestALife(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b, other := w.board(), w.board()
		one := w.add(b, "tokenizer")
		two := w.add(b, "counter", one.ID)
		if one.ID != 1 || two.ID != 2 || !slices.Equal(two.BlockedBy, []muster.TaskID{1}) || !slices.Equal(two.DependsOn, []muster.TaskID{1}) {
			t.Fatalf("got %+v and %+v", one, two)
		}
		if got, err := b.WithBlocks(w.ctx, w.get(b, 1)); err != nil || !slices.Equal(got.Blocks, []muster.TaskID{2}) {
			t.Fatalf("1 blocks %v, %v", got.Blocks, err)
		}
		c, ok, err := other.ClaimNext(w.ctx, Claim{Owner: "alice", Role: "coder"})
		if err != nil || !ok || c.ID != 1 || c.Fence != 1 || c.Owner != "alice" || c.Status != muster.InProgress || c.ClaimSource != "auto" {
			t.Fatalf("claimed %+v, %v, %v", c, ok, err)
		}
		if _, ok, err := b.ClaimNext(w.ctx, Claim{Owner: "bob"}); ok || err != nil {
			t.Fatalf("bob got something: %v, %v", ok, err)
		}
		w.refused(errOf(b.Claim(w.ctx, 2, Claim{Owner: "bob"})), muster.Invalid, "task 2 waits for 1 (in progress, alice's)")

		must(w, c, errOf(other.SetLane(w.ctx, 1, 1, "task-1-tokenizer", "abc")))
		must(w, c, errOf(other.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "of a process that has died"})))
		l, err := other.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h", Onto: "o"})
		if must(w, l, err).Status != muster.Landing || l.Landing.Head != "h" {
			t.Fatalf("landing %+v", l)
		}
		told := 0
		other.OnEffect(muster.EffectTell, func(_ context.Context, t muster.Task) error { told += int(t.ID); return nil })
		d, err := other.Complete(w.ctx, 1, 1, Outcome{Result: "done", Landed: &muster.Landed{Commit: "9c01d3e", Receipt: "ok",
			Check: "go test", Seconds: 0.7, CoveredBy: 2, Flaky: true, Review: "approved by x"}})
		if must(w, d, err).Status != muster.Completed || d.Owner != "alice" || d.CompletedBy != "alice" || d.Landing != nil || told != 1 {
			t.Fatalf("completed %+v, told %d", d, told)
		}
		if !slices.Equal(d.Effects, []muster.Effect{muster.EffectArchive}) {
			t.Fatalf("effects %v: nobody archives here, so that one stays", d.Effects)
		}
		if got := w.get(b, 2); len(got.BlockedBy) != 0 || !slices.Equal(got.DependsOn, []muster.TaskID{1}) {
			t.Fatalf("2 is %+v", got)
		}
		again, err := other.Complete(w.ctx, 1, 1, Outcome{Result: "twice"})
		if must(w, again, err).Result != "done" || told != 1 {
			t.Fatalf("completed again: %+v, told %d", again, told)
		}
		archived := 0
		b.OnEffect(muster.EffectArchive, func(_ context.Context, t muster.Task) error { archived++; return nil })
		for range 3 {
			must(w, 0, b.Settle(w.ctx))
		}
		if archived != 1 || len(w.get(b, 1).Effects) != 0 {
			t.Fatalf("archived %d times, effects %v", archived, w.get(b, 1).Effects)
		}
		if n, ok, err := b.ClaimNext(w.ctx, Claim{Owner: "bob"}); !ok || err != nil || n.ID != 2 {
			t.Fatalf("bob got %+v, %v", n, err)
		}
		w.whole()
	})
}

// Each step is told once, at its time, as of whom it is about. The log of the claims, which other programs read, has a
// line for each claim that began or ended.
func TestWhatTheStepsTell(t *testing.T) {
	const told = `0: task.created zoe 1 {"subject":"one"}
1: task.created zoe 2 {"depends_on":[1],"subject":"two"}
2: task.claimed ann 1 {"fence":1,"lane":"","role":"coder","source":"auto","subject":"one"}
3: task.landing ann 1 {"head":"h"}
4: task.returned ann 1 {"counts":true,"failed":"f","log":"l","reason":"check","seconds":2,"text":"t"}
5: task.released ann 1 {"reason":"r"}
7: task.claimed bob 1 {"fence":2,"lane":"","role":"","source":"manual","subject":"one"}
8: task.released bob 1 {"reason":"r"}
9: task.claimed bob 1 {"fence":3,"lane":"","role":"","source":"manual","subject":"one"}
10: task.released bob 1 {"by":"lead","reason":"r"}
11: task.claimed bob 1 {"fence":4,"lane":"","role":"","source":"manual","subject":"one"}
12: task.revoked bob 1 {"by":"user","reason":"late"}
13: task.claimed eve 1 {"fence":6,"lane":"","role":"","source":"manual","subject":"one"}
14: task.completed eve 1 {"check":"go test","commit":"c","covered_by":2,"flaky":true,"receipt":"ok","result":"done",` +
		`"review":"by x","seconds":0.7,"subject":"one"}
15: task.edge_removed lead 2 {"blocker":1}
15: task.updated lead 2 {"changed":["priority"]}
16: task.completed user 2 {"check":"","commit":"","receipt":"","result":"","seconds":0,"subject":"two"}
17: task.created ann 3 {"depends_on":[1],"subject":"three"}
17: task.claimed ann 3 {"fence":1,"lane":"","role":"","source":"undo","subject":"three"}
18: task.completed ann 3 {"check":"","commit":"","receipt":"","result":"","seconds":0,"subject":"three"}
19: task.deleted eve 1 {"subject":"one"}
19: task.edge_removed  3 {"blocker":1}
claims: 2 claimed 1 ann "coder" auto, 5 released 1 ann "" auto, 7 claimed 1 bob "" manual, ` +
		`8 released 1 bob "" manual, 9 claimed 1 bob "" manual, 10 released 1 bob "" manual, ` +
		`11 claimed 1 bob "" manual, 12 revoked 1 bob "" manual, 13 claimed 1 eve "" manual, ` +
		`14 completed 1 eve "" manual, 16 completed 2 user "" , 17 claimed 3 ann "" undo, 18 completed 3 ann "" undo`
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b, began := withHandlers(w.board()), now()
		minute := func(at float64) float64 { return (at - began) / 60 }
		did := func(err error) {
			must(w, 0, err)
			time.Sleep(time.Minute)
		}
		create := func(d Draft) { did(errOf(b.Create(w.ctx, d))) }
		claim := func(id muster.TaskID, who muster.Name) { did(errOf(b.Claim(w.ctx, id, Claim{Owner: who}))) }
		release := func(fence int, by muster.Name) {
			did(errOf(b.Release(w.ctx, 1, fence, Release{Reason: "r", By: by})))
		}
		create(Draft{Subject: "one", CreatedBy: "zoe"})
		create(Draft{Subject: "two", CreatedBy: "zoe", BlockedBy: []muster.TaskID{1}})
		_, _, err := b.ClaimNext(w.ctx, Claim{Owner: "ann", Role: "coder"})
		did(err)
		did(errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
		did(errOf(b.Return(w.ctx, 1, 1, "check", Details{Text: "t", Failed: "f", Log: "l", Seconds: 2})))
		release(1, "ann")
		release(1, "ann") // as a caller does that has crashed after the first time
		claim(1, "bob")
		release(2, "")
		claim(1, "bob")
		release(3, muster.Lead)
		claim(1, "bob")
		did(errOf(b.Revoke(w.ctx, 1, 4, muster.User, "late")))
		claim(1, "eve")
		did(errOf(b.Complete(w.ctx, 1, 6, Outcome{Result: "done", Landed: &muster.Landed{Commit: "c", Receipt: "ok",
			Check: "go test", Seconds: 0.7, CoveredBy: 2, Flaky: true, Review: "by x"}})))
		did(errOf(b.Update(w.ctx, 2, Patch{Priority: new(7), RemoveBlockers: []muster.TaskID{1}, By: muster.Lead})))
		did(errOf(b.CompleteByHand(w.ctx, 2, muster.User, "")))
		create(Draft{Subject: "three", CreatedBy: "ann", Undoes: []muster.TaskID{1}, BlockedBy: []muster.TaskID{1}})
		did(errOf(b.CompleteByHand(w.ctx, 3, muster.Lead, "")))
		did(b.Delete(w.ctx, 1, true))

		var got, claims []string
		for e, err := range journal.New(w.store.Log()).Read(w.ctx, 0) {
			fields, failed := json.Marshal(e.Fields)
			must(w, fields, errors.Join(err, failed))
			got = append(got, fmt.Sprintf("%v: %s %s %d %s", minute(e.At), e.Kind, e.Member, e.Task, fields))
		}
		for _, l := range w.lines() {
			event, isTask := strings.CutPrefix(l["event"].(string), "task.")
			claims = append(claims, fmt.Sprintf("%v %s %v %v %q %v", minute(l["ts"].(float64)), event, l["task_id"],
				l["owner"], l["role"], l["source"]))
			if len(l) != 6 || !isTask {
				t.Errorf("a line has %v", l)
			}
		}
		got = append(got, "claims: "+strings.Join(claims, ", "))
		if d := cmp.Diff(strings.Split(told, "\n"), got); d != "" {
			t.Error(d)
		}
	})
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

func TestSentences(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	c := w.take(b, 1, "bob")
	at := muster.Time(c.ClaimedAt).Format("15:04")

	err := errOf(b.Claim(w.ctx, 1, Claim{Owner: "alice"}))
	w.refused(err, muster.Held, "task 1 is bob's since "+at)
	if muster.HintOf(err) != "take it back with: muster task release 1" {
		t.Errorf("hint %q", muster.HintOf(err))
	}
	r, err := b.Revoke(w.ctx, 1, c.Fence, muster.User, "wanted back")
	if must(w, r, err).Fence != 2 || r.Owner != "" || r.Status != muster.Pending {
		t.Fatalf("revoked %+v", r)
	}
	w.refused(errOf(b.Complete(w.ctx, 1, c.Fence, Outcome{})), muster.Fenced, "task 1 is no longer yours: it went back to the board at "+at)
	w.take(b, 1, "alice")
	w.refused(errOf(b.Release(w.ctx, 1, c.Fence, Release{})), muster.Fenced, "task 1 is no longer yours: alice claimed it at "+at)
	w.refused(errOf(b.Revoke(w.ctx, 1, c.Fence, muster.User, "too late")), muster.Fenced, "that claim of task 1 is over")
	// Numbers that no document can have are refused, and the task stays as it is.
	w.refused(errOf(b.Complete(w.ctx, 1, 3, Outcome{Landed: &muster.Landed{Seconds: math.NaN()}})), muster.Invalid, "")
	must(w, r, errOf(b.CompleteByHand(w.ctx, 1, muster.User, "by hand")))
	w.refused(errOf(b.BeginLanding(w.ctx, 1, 3, muster.PendingLanding{})), muster.Fenced, "task 1 is no longer yours: user completed it at "+at)
	w.refused(errOf(b.Claim(w.ctx, 1, Claim{Owner: "bob"})), muster.Invalid, "task 1 is completed")
	w.refused(errClaimLost(muster.Task{ID: 1, Status: muster.NeedsAttention, Result: "no good", UpdatedAt: c.ClaimedAt}), muster.Fenced,
		"task 1 is no longer yours: it was set aside at "+at+": no good")
	w.refused(errClaimLost(muster.Task{ID: 1, Status: muster.InProgress, Owner: "ann", ClaimedAt: c.ClaimedAt}), muster.Fenced,
		"task 1 is no longer yours: ann claimed it at "+at)
	w.refused(errOf(b.Get(w.ctx, 7)), muster.NotFound, "there is no task 7")
	w.refused(errOf(b.Update(w.ctx, 7, Patch{})), muster.NotFound, "there is no task 7")
	w.refused(errOf(b.Claim(w.ctx, 7, Claim{Owner: "bob"})), muster.NotFound, "there is no task 7")
	w.refused(errOf(b.Claim(w.ctx, 1, Claim{Owner: "Bob Smith"})), muster.Invalid, "")
	w.refused(errOf(b.CompleteByHand(w.ctx, 1, "Bob Smith", "")), muster.Invalid, "")

	gated, err := b.Create(w.ctx, Draft{Subject: "two", Role: "tester"})
	must(w, gated, err)
	w.refused(errOf(b.Claim(w.ctx, 2, Claim{Owner: "bob", Role: "coder"})), muster.Invalid, "task 2 is for the role tester only, not for coder")
	w.refused(errOf(b.Claim(w.ctx, 2, Claim{Owner: "bob"})), muster.Invalid, "task 2 is for the role tester only")
	must(w, gated, errOf(b.Claim(w.ctx, 2, Claim{Owner: "bob", Role: "Tester"})))
}

// The day is left out only when it is today's: neither the same day of another year nor another day of this year is.
func TestClockNamesAnotherDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight in UTC, at the beginning of 2000
		at := muster.Task{ID: 3, Owner: "bob", ClaimedAt: now()}
		want := map[time.Duration]string{0: "15:04", 366 * 24 * time.Hour: "2006-01-02 15:04", 48 * time.Hour: "2006-01-02 15:04"}
		for _, later := range []time.Duration{0, 48 * time.Hour, 366 * 24 * time.Hour} {
			time.Sleep(time.Until(muster.Time(at.ClaimedAt).Add(later)))
			if got, want := errHeld(at).Error(), "task 3 is bob's since "+muster.Time(at.ClaimedAt).Format(want[later]); got != want {
				t.Errorf("after %v: %q, want %q", later, got, want)
			}
		}
		at.ClaimedAt = 0
		if got, want := errHeld(at).Error(), "task 3 is bob's"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestReleaseCounts(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "hard")
	w.add(b, "after", 1)
	for i := 1; i <= 3; i++ {
		c := w.take(b, 1, "alice")
		must(w, c, errOf(b.SetLane(w.ctx, 1, c.Fence, "task-1-hard", "abc")))
		r, err := b.Release(w.ctx, 1, c.Fence, Release{Reason: "interrupted"})
		if must(w, r, err).Attempts != i-1 || r.Status != muster.Pending || r.ClaimedAt != 0 || r.ClaimSource != "" ||
			(r.Note == "") != (i == 1) {
			t.Fatalf("%+v", r)
		}
		again, err := b.Release(w.ctx, 1, c.Fence, Release{Reason: "interrupted", Counts: true})
		if must(w, again, err).Attempts != i-1 {
			t.Fatalf("giving back twice counted: %+v", again)
		}
		c = w.take(b, 1, "alice")
		r, err = b.Release(w.ctx, 1, c.Fence, Release{Reason: "50 turns", Note: "try the other way", Counts: true})
		if must(w, r, err).Attempts != i || r.Note != "try the other way" || r.Owner != "" ||
			r.Worktree != "task-1-hard" || r.Base != "abc" {
			t.Fatalf("%+v", r)
		}
	}
	got := w.get(b, 1)
	if got.Status != muster.NeedsAttention || got.Result != "given back 3 times, last: 50 turns" {
		t.Fatalf("%+v", got)
	}
	if e := w.events(journal.TaskAttention); len(e) != 1 || e[0].Text("reason") != got.Result || e[0].Member != "alice" {
		t.Errorf("attention: %+v", e)
	}
	w.refused(errOf(b.Complete(w.ctx, 1, got.Fence-1, Outcome{})), muster.Fenced, "")
	err := errOf(b.Claim(w.ctx, 1, Claim{Owner: "bob"}))
	w.refused(err, muster.Invalid, "task 1 needs you: given back 3 times, last: 50 turns")
	if muster.HintOf(err) != "muster task retry 1" {
		t.Errorf("hint %q", muster.HintOf(err))
	}
	w.refused(errOf(b.Claim(w.ctx, 2, Claim{Owner: "bob"})), muster.Invalid, "task 2 waits for 1 (needs attention)")
	r, err := b.Update(w.ctx, 1, Patch{Retry: true, By: muster.User})
	if must(w, r, err).Status != muster.Pending || r.Attempts != 0 || r.Result != "" || r.Note == "" {
		t.Fatalf("%+v", r)
	}
	c := w.take(b, 1, "bob")
	// What only the user can help is set aside at once.
	got, err = b.Release(w.ctx, 1, c.Fence, Release{Reason: "no network", Note: "see the log", Final: true})
	if must(w, got, err); got.Status != muster.NeedsAttention || got.Result != "no network" || got.Fence != c.Fence+1 ||
		got.Attempts != 0 || got.Note != "see the log" || len(w.events(journal.TaskAttention)) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestReturns(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	c := w.take(b, 1, "alice")
	w.refused(errOf(b.Return(w.ctx, 1, 1, "check", Details{})), muster.Invalid, "task 1 is not landing")
	for i := 1; i <= 3; i++ {
		must(w, c, errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
		r, err := b.Return(w.ctx, 1, 1, "review", Details{Text: "FAIL", Seconds: 0.6, Sides: "both"})
		must(w, r, err)
		ended := i / 3 // the third one is told as a return, as the end of a claim and as a task that needs attention
		if n, lines := len(w.events(journal.TaskAttention)), len(w.lines()); n != ended || lines != 1+ended {
			t.Errorf("after return %d: %d events of attention, and the log has %d lines", i, n, lines)
		}
		if i < 3 && (r.Status != muster.InProgress || r.Owner != "alice" || r.Returns != i || r.Landing != nil || r.Fence != 1 || r.Sides != "") {
			t.Fatalf("return %d: %+v", i, r)
		}
	}
	got := w.get(b, 1)
	if got.Status != muster.NeedsAttention || got.Owner != "" || got.Fence != 2 || got.Landing != nil ||
		got.Result != "came back 3 times, last: review: FAIL" || got.Sides != "both" {
		t.Fatalf("%+v", got)
	}
	w.refused(errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{})), muster.Fenced, "")
	e := w.events(journal.TaskReturned)
	if len(e) != 3 || e[2].Text("reason") != "review" || e[2].Text("text") != "FAIL" || e[2].Number("seconds") != 0.6 || e[2].Member != "alice" {
		t.Errorf("%+v", e)
	}
	if r, err := b.Update(w.ctx, 1, Patch{Retry: true}); must(w, r, err).Returns != 0 || r.Sides != "" {
		t.Errorf("%+v", r)
	}
}

// A return that only a moving target has caused does not count, but a task that never gets through is given up too.
func TestReturnsOfAMovingTarget(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "one")
	w.take(b, 1, "alice")
	for i := 1; i <= maxRounds; i++ {
		must(w, 0, errOf(b.BeginLanding(w.ctx, 1, 1, muster.PendingLanding{Head: "h"})))
		got, err := b.Return(w.ctx, 1, 1, "conflict", Details{Text: "a.go\nb.go", Moved: true, With: "task 7",
			Met: []string{fmt.Sprint(i), "1"}})
		if must(w, got, err); got.Returns != 0 || got.Rounds != i || (got.Status == muster.NeedsAttention) != (i == maxRounds) {
			t.Fatalf("after round %d: %+v", i, got)
		}
	}
	if got := w.get(b, 1).Result; got != "came back 12 times, last: conflict in a.go b.go; landed meanwhile: task 7" {
		t.Errorf("%q", got)
	}
	if got := w.get(b, 1).Met; !slices.Equal(got, []string{"6", "7", "8", "9", "10", "11", "12", "1"}) {
		t.Errorf("of what it met is kept: %q", got)
	}
	if e := w.events(journal.TaskReturned); e[0].Fields["counts"] != false || e[0].Text("with") != "task 7" {
		t.Errorf("%+v", e[0])
	}
}

// The lane that is removed is forgotten by the completed task that had it, and by no other.
func TestForgetLane(t *testing.T) {
	for name, c := range map[string]struct {
		task string
		lane muster.Lane
		want muster.Name
	}{
		"completed":    {`"status": "completed", "completed_by": "ann"`, muster.Lane{Name: "lane", TaskID: 1}, ""},
		"another lane": {`"status": "completed", "completed_by": "ann"`, muster.Lane{Name: "other", TaskID: 1}, "lane"},
		"pending":      {`"status": "pending"`, muster.Lane{Name: "lane", TaskID: 1}, "lane"},
		"of no task":   {`"status": "completed", "completed_by": "ann"`, muster.Lane{Name: "lane"}, "lane"},
		"of one gone":  {`"status": "completed", "completed_by": "ann"`, muster.Lane{Name: "lane", TaskID: 9}, "lane"},
		"unreadable":   {`"status": "completed", "completed_by": "ann"`, muster.Lane{Name: "lane", TaskID: 2}, "lane"},
	} {
		w := inMemory(t)
		w.write("1", `{"id": 1, "subject": "a", "worktree": "lane", `+c.task+`}`)
		w.write("2", `{"id": 2, "subject": 7}`)
		b := w.board()
		must(w, 0, b.ForgetLane(w.ctx, c.lane))
		if got := w.get(b, 1).Worktree; got != c.want {
			t.Errorf("%s: the lane is %q, want %q", name, got, c.want)
		}
	}
}

func TestReadyInOrder(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	for _, d := range []Draft{
		{Subject: "1"}, {Subject: "2", Role: "tester"}, {Subject: "3", Priority: 5}, {Subject: "4", Role: "Tester", Priority: 9},
		{Subject: "5", Role: "coder", Priority: 5}, {Subject: "6", BlockedBy: []muster.TaskID{1}}, {Subject: "7", Priority: -1},
	} {
		must(w, 0, errOf(b.Create(w.ctx, d)))
	}
	w.write("8", `{"id": 8, "subject": "put aside for zoe by another program", "owner": "zoe", "priority": 99}`)
	ids := func(role string, onlyOwn bool) (out []muster.TaskID) {
		all, err := b.Ready(w.ctx, role, onlyOwn)
		for _, t := range must(w, all, err) {
			out = append(out, t.ID)
			if !t.Claimable(role) {
				w.Errorf("%d is not claimable for %q: %+v", t.ID, role, t)
			}
		}
		return out
	}
	for role, want := range map[string][]muster.TaskID{"": {3, 1, 7}, "tester": {4, 3, 1, 2, 7}, "coder": {3, 5, 1, 7}, "cook": {3, 1, 7}} {
		if got := ids(role, false); !slices.Equal(got, want) {
			t.Errorf("ready for %q: %v, want %v", role, got, want)
		}
	}
	for role, want := range map[string][]muster.TaskID{"tester": {4, 2}, "coder": {5}, "cook": nil} {
		if got := ids(role, true); !slices.Equal(got, want) {
			t.Errorf("ready for nobody but %q: %v, want %v", role, got, want)
		}
		got, ok, err := b.ClaimNext(w.ctx, Claim{Owner: "ann", Role: role, OnlyOwn: true})
		if must(w, got, err); ok != (want != nil) || ok && got.ID != want[0] {
			t.Errorf("%q claims %+v", role, got)
		}
	}
	must(w, 0, errOf(b.BeginLanding(w.ctx, 5, 1, muster.PendingLanding{Head: "h"})))
	if all, err := b.Claimed(w.ctx); err != nil || len(all) != 2 || all[0].ID != 4 || all[1].ID != 5 {
		t.Errorf("claimed are %+v, %v", all, err)
	}
	must(w, 0, errOf(b.CompleteByHand(w.ctx, 1, muster.User, "")))
	top := 10
	must(w, 0, errOf(b.Update(w.ctx, 7, Patch{Priority: &top})))
	if got, want := ids("", false), []muster.TaskID{7, 3, 6}; !slices.Equal(got, want) {
		t.Errorf("ready: %v, want %v", got, want)
	}
}

func TestCreateRefuses(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	for name, d := range map[string]Draft{
		"no subject":      {Subject: " "},
		"two lines":       {Subject: "a\nb"},
		"bell":            {Subject: "a\ab"},
		"long":            {Subject: strings.Repeat("ü", 201)},
		"not UTF-8":       {Subject: "a\xff"},
		"too much text":   {Subject: "a", Description: strings.Repeat("x", 64<<10+1)},
		"escape":          {Subject: "a", Description: "\x1b[31m"},
		"line separator":  {Subject: "a\u2028b"},
		"role of words":   {Subject: "a", Role: "two words"},
		"long role":       {Subject: "a", Role: strings.Repeat("ü", 33)},
		"unknown blocker": {Subject: "a", BlockedBy: []muster.TaskID{4}},
	} {
		_, err := b.Create(w.ctx, d)
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := b.List(w.ctx); err != nil || all == nil || len(all) != 0 { // for programs it is a list, not null
		t.Fatalf("%v, %v", all, err)
	}
	d := Draft{Subject: strings.Repeat("ü", 200), Description: "a\n\tb\r\n" + strings.Repeat("x", 64<<10-6),
		RequirePlan: true, Review: true, Key: "k", Files: []string{"a"}, Role: strings.Repeat("ü", 32), Priority: 3,
		CreatedBy: "zoe"}
	got, err := b.Create(w.ctx, d)
	is := w.get(b, must(w, got, err).ID)
	if d := cmp.Diff(d, Draft{Subject: is.Subject, Description: is.Description, Priority: is.Priority,
		Role: is.ClaimRole, RequirePlan: is.RequirePlan, Review: is.Review, Key: is.Key, Files: is.Files,
		CreatedBy: is.CreatedBy}); d != "" || is.CreatedAt == 0 {
		t.Errorf("created at %f: %s", is.CreatedAt, d)
	}
	w.refused(errOf(b.Create(w.ctx, Draft{Subject: "a", Description: "first\nsecond \xff"})), muster.Invalid, "the description is not UTF-8 in line 2")
}
