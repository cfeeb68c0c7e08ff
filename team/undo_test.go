package team_test

import (
	"testing"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/team"
)

// twoLanded is a lead that lands two tasks.
const twoLanded = `
speakers:
  lead:
    - do: [{task_create: {subject: make a}}, {task_create: {subject: make b}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{write_file: {path: a, content: "a\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Makes a.}}]
    - do: [{claim_task: {task_id: 2}}]
    - do: [{write_file: {path: b, content: "b\n"}}]
    - do: [{complete_task: {task_id: 2, summary: Makes b.}}]
    - say: Done.
`

// leftUndo puts a task on the board as a killed process leaves it that was taking the first task back.
func leftUndo(t *testing.T, w *world) muster.Task {
	t.Helper()
	_, store := w.open(twoLanded, nil)
	left, err := board.New(store, journal.New(store.Log())).Create(t.Context(), board.Draft{Subject: "Undo #1: make a",
		CreatedBy: muster.User, Undoes: []muster.TaskID{1}, Description: "Take it back."})
	if err != nil || left.Status != muster.InProgress || left.Owner != muster.User || left.Fence != 1 {
		t.Fatalf("%+v, %v", left, err)
	}
	return left
}

// Undo goes on with what a killed process has left, in place of a second task.
func TestUndoGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(twoLanded, 0, func(c *team.Config) { c.Teammates = 0 })
	left := leftUndo(t, w)
	tm, _ := w.open(twoLanded, func(c *team.Config) { c.Model = nil }) // none is asked
	u, err := tm.Tasks().Undo(t.Context(), []muster.TaskID{1}, false)
	if err != nil || u.Task.ID != left.ID || u.Task.Landed == nil || u.Task.Status != muster.Completed {
		t.Fatalf("%+v, %v", u, err)
	}
	if files := w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nb" {
		t.Errorf("the target has %q", files)
	}
	if all, _, _ := tm.Tasks().List(t.Context()); len(all) != 3 {
		t.Errorf("the board has %d tasks", len(all))
	}
	// Once more there is nothing to do, and nothing is made.
	if _, err := tm.Tasks().Undo(t.Context(), []muster.TaskID{1}, false); err == nil {
		t.Error("it was taken back twice")
	}
	if lanes, err := tm.Lanes().List(t.Context()); err != nil || len(lanes) != 0 {
		t.Errorf("lanes are left: %v, %v", lanes, err)
	}
}

// Nobody calls Undo again: the next team gives the task to a teammate.
func TestATeamTakesOverALeftUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(twoLanded, 0, func(c *team.Config) { c.Teammates = 0 })
	left := leftUndo(t, w)
	w.run(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: ann, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #\d+: Undo #1'
    turns:
      - do: [{bash: {command: rm a}}]
      - do: [{complete_task: {task_id: "${task}", summary: Takes a back.}}]
`, 0, nil)
	if got := w.task(left.ID); got.Status != muster.Completed || got.Owner != "ann" || got.Landed == nil {
		t.Errorf("%+v", got)
	}
	if files := w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nb" {
		t.Errorf("the target has %q", files)
	}
}
