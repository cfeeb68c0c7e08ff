package landing_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/tier"
)

// publish has the owner of a task publish a check.
func (w *world) publish(t muster.Task, name, command string) {
	w.t.Helper()
	if _, err := board.Publish(w.ctx(), w.board, t.ID, t.Fence, muster.PublishedCheck{Name: name, Command: command}); err != nil {
		w.t.Fatal(err)
	}
}

// TestContract checks that a published check holds for its own landing and each later one, with and without a check of
// the run, and that one that breaks it hears whose it is, until it is retired.
func TestContract(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for _, check := range []string{"", "true"} {
		w := newWorld(t, check, map[string]string{"a": "a\n"})
		api, lane := w.task("Api", "alice", map[string]string{"api": "v2\n"})
		w.publish(api, "api", "grep -q v1 api")
		v := w.back(api)
		if !strings.Contains(v.Text, "breaks a published check (exit 1") ||
			!strings.Contains(v.Text, "check api of task 1 (Api, alice): grep -q v1 api.\n") {
			t.Errorf("%q: its own landing: %s", check, v.Text)
		}
		w.write(lane, map[string]string{"api": "v1\n"})
		w.lands(api)

		fine, _ := w.task("Fine", "bob", map[string]string{"b": "b\n"})
		w.lands(fine)
		other, _ := w.task("Other", "carol", map[string]string{"c": "c\n"})
		w.publish(other, "other", "test -e c")
		breaks, _ := w.task("Breaks", "bob", map[string]string{"api": "v3\n"})
		v = w.back(breaks)
		if !strings.Contains(v.Text, "check api of task 1 (Api, alice)") || strings.Contains(v.Text, "other") {
			t.Errorf("%q: %s", check, v.Text)
		}
		if _, err := board.Retire(w.ctx(), w.board, api.ID, "api", muster.Lead); err != nil {
			t.Fatal(err)
		}
		w.lands(breaks)
		w.lands(other)
	}
}

// TestAContractOnARedBase checks that a run whose check was red from the start keeps published checks green all the
// same.
func TestAContractOnARedBase(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t, "false", map[string]string{"a": "a\n"})
	api, _ := w.task("Api", "alice", map[string]string{"api": "v1\n"})
	w.publish(api, "api", "test -e api")
	if v := w.lands(api); v.Task.Landed.Receipt != muster.ReceiptStillRed {
		t.Errorf("%+v", v.Task.Landed)
	}
	breaks, _ := w.task("Breaks", "bob", map[string]string{"api": ""})
	if v := w.back(breaks); !strings.Contains(v.Text, "check api of task 1") {
		t.Errorf("%s", v.Text)
	}
}

// TestUndoTakesPublishedChecks checks that a task that takes another one back is not held to what that has published,
// and nobody after it, until it is taken back itself.
func TestUndoTakesPublishedChecks(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a": "a\n"})
	api, _ := w.task("Api", "alice", map[string]string{"api": "v1\n"})
	w.publish(api, "api", "test -e api")
	w.lands(api)
	undo := w.undo(api.ID, map[string]string{"api": ""})
	w.lands(undo)
	fine, _ := w.task("Fine", "bob", map[string]string{"b": "b\n"})
	w.lands(fine)
	w.lands(w.undo(undo.ID, map[string]string{"api": "v1\n"}))
	breaks, _ := w.task("Breaks", "bob", map[string]string{"api": ""})
	if v := w.back(breaks); !strings.Contains(v.Text, "check api of task 1") {
		t.Errorf("%s", v.Text)
	}
}

// undo makes a task that takes another one back, with files in its lane that do so.
func (w *world) undo(id muster.TaskID, files map[string]string) muster.Task {
	w.t.Helper()
	t, err := w.board.Create(w.ctx(), board.Draft{Subject: "Undo", CreatedBy: muster.User, Undoes: []muster.TaskID{id}})
	w.must(err)
	tip, err := w.land.Target(w.ctx())
	w.must(err)
	lane, err := w.lanes.Create(w.ctx(), muster.LaneName(t.ID, t.Subject), t.ID, tip)
	w.must(err)
	t, err = w.board.SetLane(w.ctx(), t.ID, t.Fence, lane.Name, lane.Base)
	w.must(err)
	w.write(lane.Path, files)
	return t
}

// TestAContractThatTheBoardHearsOfLate checks that a published check holds as soon as its task is on the target: the
// board is told later, and after a crash only when somebody goes on with it.
func TestAContractThatTheBoardHearsOfLate(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a": "a\n"})
	one := w.landedUnrecorded(muster.ReceiptGreen)
	w.publish(one, "one", "test -e one")
	breaks, _ := w.task("Breaks", "bob", map[string]string{"one": ""})
	if v := w.back(breaks); !strings.Contains(v.Text, "check one of task 1") {
		t.Errorf("%s", v.Text)
	}
}
