package watch

import (
	"cmp"
	"fmt"
	"slices"

	"muster/team"
)

// todoIn returns the last list of steps in a part of a conversation, nil for none.
func todoIn(all []team.Said) []team.Step {
	for _, s := range slices.Backward(all) {
		if s.Steps != nil {
			return s.Steps
		}
	}
	return nil
}

// todo returns the rows of the member's list of steps, which stand above its conversation until all are done. They get
// at most half of the right side. Where they need more, those before the current one go first.
func (m *model) todo() []string {
	steps, done := m.detail.todo, 0
	for _, s := range steps {
		if s.Status == team.StepCompleted {
			done++
		}
	}
	// A list that is done says nothing of what comes next.
	if m.detail.row.member == nil || done == len(steps) {
		return nil
	}
	rows := []string{fmt.Sprintf("TODO %d of %d completed", done, len(steps))}
	most := max((m.layout().body-2)/2, 1)
	if over := len(steps) - most; over > 0 {
		at := slices.IndexFunc(steps, func(s team.Step) bool { return s.Status != team.StepCompleted })
		// One finished step stays in sight, to show where the member comes from.
		from := min(max(at-1, 0), over)
		steps = steps[from : from+most]
	}
	// The marks are those that the member itself reads.
	marks := map[team.StepStatus]string{team.StepInProgress: "[>] ", team.StepCompleted: "[x] "}
	for _, s := range steps {
		rows = append(rows, cmp.Or(marks[s.Status], "[ ] ")+m.oneLine(s.Text))
	}
	return rows
}

// detailRows is how many rows of what can be scrolled are seen on the right side.
func (m *model) detailRows() int { return max(m.layout().detailRows()-len(m.todo()), 1) }
