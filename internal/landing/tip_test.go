package landing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/journal"
)

// tipRecord is the tips of a run's record, which all processes of the team share.
type tipRecord struct {
	mu            sync.Mutex
	tips          []muster.Tip
	before, after func() // each is called once, before or after the next reading
}

// share makes a Lander keep its tips in the record.
func (r *tipRecord) share(o *landing.Options) {
	o.Tips = func(_ context.Context, _ string, change func([]muster.Tip) []muster.Tip) ([]muster.Tip, error) {
		if change == nil {
			callOnce(&r.before)
			defer callOnce(&r.after)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if change != nil {
			r.tips = change(r.tips)
		}
		return slices.Clone(r.tips), nil
	}
}

// callOnce calls what f leads to, if there is anything, and forgets it.
func callOnce(f *func()) {
	if call := *f; call != nil {
		*f = nil
		call()
	}
}

// newTipWorld returns a world whose Lander remembers where the target is.
func newTipWorld(t *testing.T) (*world, *tipRecord) {
	t.Helper()
	r := &tipRecord{}
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, r.share)
	r.tips = []muster.Tip{{Commit: w.git("rev-parse", target)}}
	return w, r
}

// While the check of one process runs, another process lands twice. What the first announces then must not make the
// place of the target look like one that no landing made.
func TestALateAnnouncementForgetsNoTip(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	three, _ := w.task("Three", "bob", map[string]string{"three": "3\n"})
	slow := w.lander("true", launchAfter(func() { w.lands(two); w.lands(three) }, launch), r.share)
	w.landed(slow.Land(w.ctx(), one.ID, one.Fence, "late", one.Owner))
	w.has(map[string]string{"one": "1", "two": "2", "three": "3"})
	equal(t, "the target was put back", w.git("for-each-ref", "refs/muster/archive/"), "")
}

// What several processes are about to land on one tip stays announced, until something is to land on one of them.
func TestTipsOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	base := r.tips[0].Commit
	for _, commit := range []string{"one", "two"} {
		require.NoError(t, landing.Announce(w.ctx(), w.lander("", launch, r.share), base, commit))
	}
	equal(t, "the tips", fmt.Sprint(r.tips), fmt.Sprint([]muster.Tip{{Commit: base}, {Commit: "one", Onto: base}, {Commit: "two", Onto: base}}))
	require.NoError(t, landing.Announce(w.ctx(), w.lander("", launch, r.share), "two", "three"))
	equal(t, "the tips", fmt.Sprint(r.tips), fmt.Sprint([]muster.Tip{{Commit: "two", Onto: base}, {Commit: "three", Onto: "two"}}))
	for i := range 70 { // what was tried long ago is forgotten, and never where the target is
		require.NoError(t, landing.Announce(w.ctx(), w.land, "two", fmt.Sprint(i)))
	}
	kept := []string{r.tips[0].Commit, r.tips[1].Commit, r.tips[len(r.tips)-1].Commit}
	equal(t, "the first, the second and the last", fmt.Sprint(kept), "[two 6 69]")
}

// Somebody who looks while another process lands sees the target before the landing or after it, and displaced in
// neither case.
func TestALandingDuringALookDisplacesNothing(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(*tipRecord) *func(){
		"before the record is read": func(r *tipRecord) *func() { return &r.before },
		"after the record is read":  func(r *tipRecord) *func() { return &r.after },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newTipWorld(t)
			task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
			other := w.lander("", launch, r.share)
			*hook(r) = func() { w.lands(task) }
			if _, d, err := other.Secure(w.ctx()); err != nil || d != nil {
				t.Errorf("displaced: %v, %v", d, err)
			}
			w.show("one")
		})
	}
}

// The target is rewound while the board is about to be told of a landing, where either place may be right. Once it is
// told, the next landing must not go on from there.
func TestRewoundWhileALandingIsRecorded(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	base := w.git("rev-parse", target)
	one := w.landedUnrecorded(muster.ReceiptUnchecked)
	commit := w.git("rev-parse", target)
	r.tips = append(r.tips, muster.Tip{Commit: commit, Onto: base})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	w.git("update-ref", target, base)
	if tip, err := w.land.Target(w.ctx()); err != nil || tip != base {
		t.Fatalf("nobody knows that it has landed, and the target is %s, %v", tip, err)
	}
	landed := muster.Landed{Commit: commit, Receipt: muster.ReceiptUnchecked}
	_, err := w.board.Complete(w.ctx(), one.ID, one.Fence, board.Outcome{Landed: &landed, By: "alice"})
	w.must(err)
	tip := w.lands(two).Task.Landed.Commit
	w.has(map[string]string{"one": "1", "two": "2"})
	w.git("update-ref", target, commit) // where this process has seen it last
	if now, err := w.land.Target(w.ctx()); err != nil || now != tip {
		t.Errorf("rewound after it was recorded, it is at %s, %v", now, err)
	}
}

// Work that a lane puts on the target by itself is taken off it. Its owner is told, and can land it; others are not held
// up by it.
func TestALaneMovesTheTarget(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	one, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	byHand := func(args ...string) string {
		out, err := gittest.User(lane, args...)
		w.must(err)
		return out
	}
	byHand("add", "-A")
	byHand("commit", "-qm", "by hand")
	moved := byHand("rev-parse", "HEAD")
	w.git("update-ref", target, moved)
	w.lands(two)
	equal(t, "on the target", w.git("ls-tree", "--name-only", target), "a.txt\ntwo")
	w.git("update-ref", target, moved)
	v, err := w.try(one)
	if err != nil || v.Task.Status != muster.InProgress || v.Task.Owner != "alice" || !strings.Contains(v.Text, "Only landings move muster/demo") {
		t.Errorf("%+v, %v", v, err)
	}
	w.lands(one)
	w.has(map[string]string{"one": "1", "two": "2"})
	// A target that is gone, or that was built on, goes back to the last commit that has landed.
	last := w.git("rev-parse", target)
	base := w.git("rev-parse", last+"^")
	r.tips = []muster.Tip{{Commit: base}, {Commit: last, Onto: base}, {Commit: moved, Onto: last}} // the last one never landed
	inItsWay := w.git("commit-tree", "-m", "in its way", "main^{tree}")
	for _, at := range []string{"", w.git("commit-tree", "-p", last, "-m", "by hand", "main^{tree}")} {
		if at == "" {
			w.git("update-ref", "-d", target)
			w.git("update-ref", target+"/in-its-way", inItsWay)
		} else {
			w.git("update-ref", target, at)
		}
		if tip, d, err := w.land.Secure(w.ctx()); err != nil || d == nil || tip != last || w.git("rev-parse", target) != last ||
			w.git("for-each-ref", "--points-at="+inItsWay, "refs/muster/archive") == "" ||
			at != "" && w.git("rev-parse", d.Kept) != at {
			t.Errorf("the target was put back to %s, %v, %v", tip, d, err)
		}
	}
	// One that leads to another branch is not where it is, although that is at the same commit.
	w.git("branch", "-q", "another", last)
	w.must(fault(w.land.Target(w.ctx())))
	w.git("symbolic-ref", target, "refs/heads/another")
	w.must(fault(w.land.Target(w.ctx())))
	_, link, err := w.repo.Branch(w.ctx(), target)
	equal(t, "the target leads", link, "")
	w.must(err)
}

// A target that is displaced while work is checked is put back, and the work does not land on what was there.
func TestTheTargetIsDisplacedDuringTheCheck(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	base := w.git("rev-parse", target)
	moved := w.git("commit-tree", "-p", base, "-m", "by hand", "main^{tree}")
	l := w.lander("true", launchAfter(func() { w.git("update-ref", target, moved) }, launch), r.share)
	v, err := l.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)
	if err != nil || v.Task.Status != muster.InProgress || !strings.Contains(v.Text, "Only landings move muster/demo") {
		t.Errorf("%+v, %v", v, err)
	}
	equal(t, "the target", w.git("rev-parse", target), base)
	w.noRefs()
	w.lands(task)
	// The check has deleted it: that is the user's command, so it stays gone until they bring it back.
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	tip := w.git("rev-parse", target)
	l = w.lander("true", launchAfter(func() { w.git("update-ref", "-d", target) }, launch), r.share)
	for range 2 {
		_, err := l.Land(w.ctx(), two.ID, two.Fence, "", two.Owner)
		wants(t, err, muster.ErrNotFound, "the target branch muster/demo is gone")
		says(t, hint(err), "git branch muster/demo COMMIT")
	}
	w.git("update-ref", target, tip)
	w.lands(two)
}

// A target that the user may have moved is left where it is, and one that somebody else has moved is put back.
func TestATargetThatTheUserMayHaveMoved(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	base := w.git("rev-parse", target)
	commit := func(name string) string { return w.git("commit-tree", "-p", base, "-m", name, "main^{tree}") }
	mine, lanes, other := commit("mine"), commit("a lane's"), commit("another")
	w.git("branch", "mine", mine)
	w.git("branch", "wt/lane", lanes)
	for name, c := range map[string]struct {
		at                string
		isAtRest, isUsers bool
	}{
		"to their commit": {mine, false, true}, "to a lane's": {lanes, false, false},
		"to one of nobody": {other, false, false}, "there while nobody works": {other, true, true},
		"away while nobody works": {"", true, true},
	} {
		told := ""
		w.process("", r.share, func(o *landing.Options) {
			o.TellLead = func(_ context.Context, text string) error { told = text; return nil }
		})
		w.must(w.land.AtRest(w.ctx()))
		w.must(w.repo.UpdateRefs(w.ctx(), []git.RefUpdate{{Ref: target, New: c.at, Old: base}}))
		if c.isAtRest {
			w.must(w.land.AtRest(w.ctx()))
		}
		tip, d, err := w.land.Secure(w.ctx())
		now, _ := w.repo.Ref(w.ctx(), target)
		if err != nil || d == nil || d.IsUsers != c.isUsers || tip != base || (now == c.at) != c.isUsers ||
			(now == base) == c.isUsers || strings.Contains(told, fmt.Sprintf("--accept %.12s", c.at)) == c.isUsers {
			t.Errorf("%s: it is at %q, %v, %v; the lead is told %q", name, now, d, err, told)
		}
		w.must(w.repo.UpdateRefs(w.ctx(), []git.RefUpdate{{Ref: target, New: base, Old: now}}))
	}
}

// What somebody has committed on the target while they had it checked out is theirs: landings ask what holds, and go on
// from what the user accepts. What is moved later is not.
func TestTheUserCommitsOnTheTarget(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.look()
	over := w.begin(w.ctx(), w.land, task)
	w.awaitWait(1)
	w.git("-C", w.root+"-look", "commit", "-q", "--allow-empty", "-m", "mine")
	mine := w.git("rev-parse", target)
	wants(t, fault(w.land.Accept(w.ctx(), "main")), muster.ErrHeld, "is checked out at")
	w.leave()
	wait.For(t, "the question", func() bool {
		return len(w.said(journal.RunNote, "text", "Go on from there: muster target --accept "+mine[:12])) == 1
	})
	require.NoError(t, fault(w.lander("", launch, r.share).Accept(w.ctx(), mine)))
	end := <-over
	w.landed(end.v, end.err)
	equal(t, "it landed on", w.git("rev-parse", target+"^"), mine)
	tip := w.git("rev-parse", target)
	w.git("update-ref", target, mine)
	if _, d, err := w.land.Secure(w.ctx()); err != nil || d == nil || d.IsUsers || w.git("rev-parse", target) != tip {
		t.Errorf("%+v, %v", d, err)
	}
}

// A lane with the content of a target that no landing has brought there is no lane without a change: nobody has checked
// the target. The check runs on it as it is, and a red one returns the task.
func TestALaneLikeATargetThatSomebodyMoved(t *testing.T) {
	t.Parallel()
	for check, wantsRed := range map[string]bool{"test ! -e bad": true, "true": false, "": false} {
		w := newWorld(t, check, map[string]string{"a": "a\n"})
		if res, err := w.land.CheckBase(w.ctx()); err != nil || res.Green != (check != "") {
			t.Fatalf("the base: %+v, %v", res, err)
		}
		task, lane := w.task("Same", "alice", map[string]string{"bad": "x\n"})
		w.git("-C", lane, "add", "-A")
		w.git("-C", lane, "commit", "-qm", "same")
		w.git("update-ref", target, w.git("-C", lane, "rev-parse", "HEAD"))
		v, err := w.try(task)
		isBack := v.Task.Status == muster.InProgress && strings.Contains(v.Text, "check")
		if err != nil || isBack != wantsRed || !isBack && v.Task.Status != muster.Completed {
			t.Errorf("check %q: %+v, %v", check, v, err)
		}
		w.noRefs()
	}
}

// At the end of a run the check runs where nobody knows what it says, and only there.
func TestTheTargetIsCheckedWhereItIs(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	w.process("test ! -e bad", r.share)
	if _, isRun, err := w.land.CheckMoved(w.ctx()); err != nil || !isRun {
		t.Errorf("of the base nothing is known, and the check ran: %v, %v", isRun, err)
	}
	w.state = landing.BaseGreen
	w.process("test ! -e bad", r.share)
	if _, isRun, err := w.land.CheckMoved(w.ctx()); err != nil || isRun {
		t.Errorf("it ran on a base of which the record tells: %v, %v", isRun, err)
	}
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.lands(task)
	if _, isRun, err := w.land.CheckMoved(w.ctx()); err != nil || isRun {
		t.Errorf("it ran on what has landed: %v, %v", isRun, err)
	}
	_, lane := w.task("Two", "bob", map[string]string{"bad": "x\n"})
	w.git("-C", lane, "add", "-A")
	w.git("-C", lane, "commit", "-qm", "by hand")
	moved := w.git("-C", lane, "rev-parse", "HEAD")
	require.NoError(t, fault(w.land.Accept(w.ctx(), moved)))
	equal(t, "of the accepted target the check says", w.state, "")
	if res, isRun, err := w.land.CheckMoved(w.ctx()); err != nil || !isRun || res.Green {
		t.Errorf("on the accepted commit it ran: %v, green: %v, %v", isRun, res.Green, err)
	}
	w.state = "ok"
	w.git("update-ref", target, "main") // the user moves it, and accepts it where it is
	w.must(fault(w.land.Accept(w.ctx(), "main")))
	equal(t, "of the target that was moved by hand the check says", w.state, "")
}

// look checks the target out, as somebody who looks at it, and leave removes that checkout.
func (w *world) look()  { w.git("worktree", "add", "-q", w.root+"-look", "muster/demo") }
func (w *world) leave() { w.git("worktree", "remove", w.root+"-look") }

// waits returns how often people were told that landings wait because of the checkout.
func (w *world) waits() int {
	w.t.Helper()
	return len(w.said(journal.RunNote, "text", "muster/demo is checked out at "+w.root+"-look: landings wait"))
}

// awaitWait waits until people were told so for the nth time.
func (w *world) awaitWait(n int) {
	w.t.Helper()
	for _, err := range w.journal.Follow(w.ctx(), 0) {
		w.must(err)
		if w.waits() == n {
			return
		}
	}
}

// ending is the end of a landing that goes on beside the test.
type ending struct {
	v   landing.Verdict
	err error
}

func (w *world) begin(ctx context.Context, l *landing.Lander, t muster.Task) <-chan ending {
	over := make(chan ending, 1)
	go func() {
		v, err := l.Land(ctx, t.ID, t.Fence, "Does it.", t.Owner)
		over <- ending{v, err}
	}()
	return over
}

// A target that somebody has checked out is not moved under them: the landing waits, says so once, and goes on when
// they have seen enough; or ends as it would have.
func TestTheTargetIsCheckedOut(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		isLate bool // they look while the check runs
		then   func(w *world, task muster.Task, stop context.CancelCauseFunc)
		ends   error
	}{
		"before":           {false, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"during the check": {true, func(w *world, _ muster.Task, _ context.CancelCauseFunc) { w.leave() }, nil},
		"the claim is over": {false, func(w *world, task muster.Task, _ context.CancelCauseFunc) {
			w.must(w.land.Revoke(w.ctx(), task.ID, task.Fence))
			w.must(takeBack(w, task))
		}, muster.ErrFenced},
		"its owner ends": {true, func(_ *world, _ muster.Task, stop context.CancelCauseFunc) { stop(enough) }, enough},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
			tip := w.git("rev-parse", target)
			ctx, stop := context.WithCancelCause(w.ctx())
			defer stop(nil)
			l := w.land
			if c.isLate {
				l = w.lander("true", launchAfter(w.look, launch))
			} else {
				w.look()
			}
			over := w.begin(ctx, l, task)
			w.awaitWait(1)
			if w.git("rev-parse", target) != tip {
				t.Fatal("it landed")
			}
			c.then(w, task, stop)
			end := <-over
			if n := w.waits(); !errors.Is(end.err, c.ends) || n != 1 || (end.v.Task.Landed != nil) != (c.ends == nil) ||
				(w.git("rev-parse", target) != tip) != (c.ends == nil) {
				t.Errorf("%+v, %v; said %d times", end.v, end.err, n)
			}
		})
	}
}
