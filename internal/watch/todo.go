package watch

import (
	"slices"
	"strings"

	"muster/internal/lazyregexp"
	"muster/team"
)

// todoText is what the tool todo answers: all steps, and how many are done.
var todoText = lazyregexp.New(`^(\[[ >x]\] [^\n]*\n)+\d+ of \d+ completed$`)

// todoIn returns the last list of steps in a part of a conversation, "" for none.
func todoIn(all []team.Said) string {
	for _, s := range slices.Backward(all) {
		if s.Kind == team.SaidResult && strings.HasSuffix(s.Text, " completed") && todoText().MatchString(s.Text) {
			return s.Text
		}
	}
	return ""
}

// todo returns the rows of the member's list of steps, which stand above its conversation until all are done. They get
// at most half of the right side. Where they need more, those before the current one go first.
func (m *model) todo() []string {
	if m.detail.row.member == nil || m.detail.todo == "" || !strings.Contains(m.detail.todo, "[ ]") &&
		!strings.Contains(m.detail.todo, "[>]") {
		return nil
	}
	// The last line counts the steps, and becomes the title.
	rows := strings.Split(m.clean(m.detail.todo), "\n")
	count, steps := "TODO "+rows[len(rows)-1], rows[:len(rows)-1]
	most := max((m.layout().body-2)/2, 1)
	if over := len(steps) - most; over > 0 {
		at := slices.IndexFunc(steps, func(s string) bool { return !strings.HasPrefix(s, "[x]") })
		// One finished step stays in sight, to show where the member comes from.
		from := min(max(at-1, 0), over)
		steps = steps[from : from+most]
	}
	return append([]string{count}, steps...)
}

// detailRows is how many rows of what can be scrolled are seen on the right side.
func (m *model) detailRows() int { return max(m.layout().detailRows()-len(m.todo()), 1) }
