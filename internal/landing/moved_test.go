package landing_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
)

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
	if _, isRun, err := landing.CheckMoved(w.ctx(), w.land); err != nil || !isRun {
		t.Errorf("of the base nothing is known, and the check ran: %v, %v", isRun, err)
	}
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.lands(task)
	if _, isRun, err := landing.CheckMoved(w.ctx(), w.land); err != nil || isRun {
		t.Errorf("it ran on what has landed: %v, %v", isRun, err)
	}
	_, lane := w.task("Two", "bob", map[string]string{"bad": "x\n"})
	w.git("-C", lane, "add", "-A")
	w.git("-C", lane, "commit", "-qm", "by hand")
	moved := w.git("-C", lane, "rev-parse", "HEAD")
	if _, err := w.land.Accept(w.ctx(), moved); err != nil {
		t.Fatal(err)
	}
	if w.state != "" {
		t.Errorf("of the accepted target the check is known to be %q", w.state)
	}
	if res, isRun, err := landing.CheckMoved(w.ctx(), w.land); err != nil || !isRun || res.Green {
		t.Errorf("on the accepted commit it ran: %v, green: %v, %v", isRun, res.Green, err)
	}
}
