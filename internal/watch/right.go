package watch

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// rightSide draws what is selected: a title, and the rows that are seen. Beside the title stands how far the reader is,
// or that the newest rows are followed.
func (f frame) rightSide() []string {
	m, d := f.model, &f.model.detail
	m.writer().layOut(f.right)
	// The steps of a member stay where they are while its conversation scrolls below them.
	todo := m.todo()
	height := f.body - 1 - len(todo)
	last := max(len(d.rows)-height, 0)
	if d.top = min(d.top, last); d.follows {
		d.top = last
	}
	if m.input != nil && m.input.isBelow { // what was said of the line stands between it and the box
		d.top = max(d.top, d.boxRow()+2-height)
	}
	place := ""
	if last > 0 {
		place = fmt.Sprintf("  %d%%", (d.top*100+last-1)/last)
		if d.follows {
			place = "  follows"
		} else if d.row.member != nil || d.key == pageEvents {
			place += ", G follows"
		}
	}
	place = d.hits.text() + place
	title := text.CutColumns(f.title(), max(f.right-len(place), 4))
	// The title gives way to the place, which is short.
	rows := []string{sgr(m.paint, titleColour(paneDetail, m.focus), title) + m.paint.In(view.Faint, place)}
	if d.problem != "" {
		rows = append(rows, m.paint.In(view.Bad, text.CutColumns(d.problem, f.right)))
	}
	for _, step := range todo {
		rows = append(rows, m.paint.In(view.Faint, text.CutColumns(step, f.right)))
	}
	for i, r := range d.rows[d.top:min(d.top+max(height, 0), len(d.rows))] {
		rows = append(rows, f.row(d.top+i, r))
		if m.input != nil && m.input.isBelow && d.top+i == d.boxRow() {
			line, x := m.input.draw(f.right - 4)
			m.cursor = tea.Position{X: f.right0() + 4 + x, Y: 1 + len(rows)}
			rows = append(rows, "    "+line)
		}
	}
	if len(d.rows) == 0 && d.row.member != nil && d.problem == "" {
		rows = append(rows, m.paint.In(view.Faint, "nothing was said yet"))
	}
	return rows
}

// row draws a row of the right side, with the mark where there is one.
func (f frame) row(i int, r textRow) string {
	m, d, mark, width := f.model, &f.model.detail, "", f.right
	if d.hasMark() {
		width -= 2
		if mark = "  "; i == d.mark && m.focus == paneDetail {
			mark = "> "
		}
	}
	if r.other == nil {
		return mark + d.paintRow(m.paint, r, width)
	}
	// Both sides scroll together, so that what belongs together stays on one row.
	half := (width - 3) / 2
	return mark + fit(d.paintRow(m.paint, r, half), half) + " │ " + d.paintRow(m.paint, *r.other, half)
}

// paintRow returns a row in its colour, with what was searched in reverse.
func (d *detail) paintRow(p view.Paint, r textRow, width int) string {
	// Only what is seen is coloured and searched: a row that is cut is cut before.
	width -= ansi.StringWidthWc(r.before)
	cut := func(s string) string {
		if !r.isCut {
			return s
		}
		return ansi.TruncateLeftWc(ansi.TruncateWc(s, d.left+width, ""), d.left, "")
	}
	text := cut(r.text)
	colour := func(s string) string { return p.In(r.tone, s) }
	if r.who != "" {
		colour = func(s string) string { return p.Who(r.who, s) }
	} else if r.sgr != "" {
		colour = func(s string) string { return sgr(p, r.sgr, s) }
	}
	if d.hits.pattern == nil || !d.hits.pattern.MatchString(text) {
		if r.painted != "" {
			return r.before + cut(r.painted)
		}
		return r.before + colour(text)
	}
	// Each piece has its own colour and reset, because a reversed piece within a coloured one would end it.
	line, at := r.before, 0
	for _, x := range d.hits.pattern.FindAllStringIndex(text, -1) {
		line += colour(text[at:x[0]]) + sgr(p, reverse, text[x[0]:x[1]])
		at = x[1]
	}
	return line + colour(text[at:])
}

// title says what the right side shows. A member's title is as the member is now, and a request's says how it was
// decided, because the user may have scrolled away from the line that says so.
func (f frame) title() string {
	m := f.model
	mark := ""
	if m.focus == paneDetail {
		mark = "> "
	}
	switch r := m.detail.row; {
	case r.member != nil:
		x := m.o.AsItIs(*r.member)
		parts := []string{string(x.Name), x.Role, string(m.o.Standing(x, m.subject).Look), text.Count(x.Turns, "turn"),
			m.o.CostOf(x).Cost(), x.Model}
		isEmpty := func(s string) bool { return s == "" }
		return mark + m.oneLine(strings.Join(slices.DeleteFunc(slices.Compact(parts), isEmpty), ", "))
	case r.need != nil && r.need.Request != nil:
		what, x := "QUESTION", m.detail.question()
		if x.Kind == muster.AskPlan {
			what = "PLAN"
		}
		if x.Status != muster.RequestPending {
			what += " " + view.RequestWord(x.Status)
		}
		if x.TaskID != 0 {
			what += " for " + m.taskName(x.TaskID)
		}
		return mark + what
	case isMail(m):
		return mark + "MAIL for you and the lead"
	case m.detail.taskID() != 0:
		return mark + "TASK " + m.taskName(m.detail.taskID())
	case m.detail.key == foldedKey:
		return ""
	}
	return mark + strings.ToUpper(m.detail.key)
}
