package team_test

import (
	"testing"
	"time"

	"muster"
	"muster/internal/board"
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

// leftUndo lands the tasks, and puts another on the board as a killed process leaves it that was taking the first one back.
// It runs in a bubble of synctest.
func leftUndo(h *house) muster.Task {
	h.Helper()
	h.start(twoLanded, nil).ends(0, time.Hour)
	time.Sleep(time.Second)
	left, err := h.board.Create(h.Context(), board.Draft{Subject: "Undo #1: make a", CreatedBy: muster.User,
		Undoes: []muster.TaskID{1}, Description: "Take it back."})
	if err != nil || left.Status != muster.InProgress || left.Owner != muster.User || left.Fence != 1 {
		h.Fatalf("%+v, %v", left, err)
	}
	return left
}

// Undo goes on with what a killed process has left, in place of a second task.
func TestUndoGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		left := leftUndo(h)
		tm := h.open(nil, func(c *team.Config) { c.Model = nil }) // none is asked
		u, err := tm.Tasks().Undo(h.Context(), []muster.TaskID{1}, false)
		if err != nil || u.Task.ID != left.ID || u.Task.Landed == nil || u.Task.Status != muster.Completed {
			t.Fatalf("%+v, %v", u, err)
		}
		if files := h.onTarget(); files != "b" {
			t.Errorf("the target has %q", files)
		}
		if all, _, _ := tm.Tasks().List(h.Context()); len(all) != 3 {
			t.Errorf("the board has %d tasks", len(all))
		}
		// Once more there is nothing to do, and nothing is made.
		if _, err := tm.Tasks().Undo(h.Context(), []muster.TaskID{1}, false); err == nil {
			t.Error("it was taken back twice")
		}
		if lanes, err := tm.Lanes().List(h.Context()); err != nil || len(lanes) != 0 {
			t.Errorf("lanes are left: %v, %v", lanes, err)
		}
	})
}

// Nobody calls Undo again: the next team gives the task to a teammate.
func TestATeamTakesOverALeftUndo(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		left := leftUndo(h)
		h.start(`
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
`, nil).ends(0, time.Hour)
		if got := h.task(left.ID); got.Status != muster.Completed || got.Owner != "ann" || got.Landed == nil {
			t.Errorf("%+v", got)
		}
		if files := h.onTarget(); files != "b" {
			t.Errorf("the target has %q", files)
		}
	})
}
