package landing_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
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
	v, err := slow.Land(w.ctx(), one.ID, one.Fence, "late", one.Owner)
	if err != nil || v.Task.Landed == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, name := range []string{"one", "two", "three"} {
		w.show(name)
	}
	equal(t, "the target was put back", w.git("for-each-ref", "refs/muster/archive/"), "")
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
	w.lands(two)
	if w.show("one") != "1" || w.show("two") != "2" {
		t.Error("what had landed is gone")
	}
}

// Work that a lane puts on the target by itself is taken off it. Its owner is told, and can land it; others are not held
// up by it.
func TestALaneMovesTheTarget(t *testing.T) {
	t.Parallel()
	w, r := newTipWorld(t)
	one, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	gittest.Git(t, lane, "add", "-A")
	gittest.Git(t, lane, "commit", "-qm", "by hand")
	moved := gittest.Git(t, lane, "rev-parse", "HEAD")
	w.git("update-ref", target, moved)
	w.lands(two)
	if files := w.git("ls-tree", "--name-only", target); files != "a.txt\ntwo" {
		t.Errorf("on the target is %s", files)
	}
	w.git("update-ref", target, moved)
	v, err := w.try(one)
	if err != nil || v.Task.Status != muster.InProgress || v.Task.Owner != "alice" || !strings.Contains(v.Text, "Only landings move muster/demo") {
		t.Errorf("%+v, %v", v, err)
	}
	w.lands(one)
	if w.show("one") != "1" || w.show("two") != "2" {
		t.Error("not all of the work is on the target")
	}
	// A target that is gone, or that was built on, goes back to the last commit that has landed.
	last := w.git("rev-parse", target)
	base := w.git("rev-parse", last+"^")
	r.tips = []muster.Tip{{Commit: base}, {Commit: last, Onto: base}, {Commit: moved, Onto: last}} // the last one never landed
	for _, at := range []string{"", w.git("commit-tree", "-p", last, "-m", "by hand", "main^{tree}")} {
		if at == "" {
			w.git("update-ref", "-d", target)
		} else {
			w.git("update-ref", target, at)
		}
		if tip, d, err := w.land.Secure(w.ctx()); err != nil || d == nil || tip != last || w.git("rev-parse", target) != last {
			t.Errorf("the target was put back to %s, %v, %v", tip, d, err)
		}
	}
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
}
