package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// stateWidth is the width of the column of states.
const stateWidth = len(view.LookNeedsYou)

// foldedKey is the key of the row that counts the tasks that are finished.
const foldedKey = "finished"

// boardOptions say how the board is shown.
type boardOptions struct {
	isTree      bool
	hasFinished bool // finished tasks are listed too
}

// rank orders the board: what needs somebody, then what is under way, then what is to come, then what is finished.
var rank = map[string]int{"needs_attention": 0, "landing": 1, "in_progress": 2, "ready": 3, "waiting": 4, "landed": 5,
	"done": 5}

// rows returns the tasks that a filter leaves as rows. Finished ones are counted in one row unless they were asked for
// or searched: of 1,000 tasks the few that matter stand at the top. The tree is made of the tasks that are shown, so
// one whose blockers have all landed stands at its top.
func (b boardOptions) rows(all []muster.Task, filter string) []row {
	var shown []muster.Task
	finished := 0
	for _, t := range all {
		switch {
		case filter != "" && !matches(filter, row{task: &t}.text()):
		case t.Status == muster.Completed && filter == "" && !b.hasFinished:
			finished++
		default:
			shown = append(shown, t)
		}
	}
	rows := make([]row, 0, len(shown)+1)
	if b.isTree {
		for _, n := range view.TreeTasks(shown) {
			rows = append(rows, row{key: taskKey(n.Task.ID), task: n.Task, level: n.Level})
		}
	} else {
		slices.SortStableFunc(shown, func(x, y muster.Task) int {
			return cmp.Or(rank[view.BoardLabel(x)]-rank[view.BoardLabel(y)], int(x.ID-y.ID))
		})
		for i := range shown {
			rows = append(rows, row{key: taskKey(shown[i].ID), task: &shown[i]})
		}
	}
	if finished > 0 {
		rows = append(rows, row{key: foldedKey, level: finished})
	}
	return rows
}

// taskKey is the key of a task's row.
func taskKey(id muster.TaskID) string { return fmt.Sprintf("task %d", id) }

// drawTask returns a task in one line: its number, its state, its subject, and its owner where there is room. What
// needs the user is amber, what has landed green, and what cannot begin yet is faint.
func (s *teamState) drawTask(r row, width int) cells {
	if r.task == nil {
		return cells{{text: fmt.Sprintf("%d finished (space: list)", r.level), tone: view.Faint}}
	}
	t, stands := r.task, view.TaskState(*r.task)
	if t.Status == muster.Pending {
		stands.Tone = view.Faint
	}
	state := cell{text: text.PadColumns(stands.Text, stateWidth), tone: stands.Tone}
	owner := text.CutColumns(text.OneLine(string(t.Owner)), 10)
	subject := strings.Repeat("  ", r.level) + s.oneLine(t.Subject)
	ids := len(strconv.Itoa(len(s.o.Tasks))) + 1 // wide enough unless many were deleted
	left := width - ids - 1 - stateWidth - 1
	number := cell{text: fmt.Sprintf("%*d ", ids, t.ID)}
	// A narrow pane has no room for the owner beside a subject that says something.
	if owner != "" && left >= 24 {
		left -= len(owner) + 1
		padded := " " + text.PadColumns(text.CutColumns(subject, left), left) + " "
		return cells{number, state, {text: padded}, {text: owner, who: owner}}
	}
	return cells{number, state, {text: " " + text.CutColumns(subject, max(left, 4))}}
}
