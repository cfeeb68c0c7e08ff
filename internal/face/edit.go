package face

import (
	"strings"

	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
)

// PreviewLines is how many lines of an edit stand below its call.
const PreviewLines = 8

// EditLine is a line of a difference as people read it, behind its sign.
type EditLine struct {
	Text string
	Tone view.Tone
}

// EditLines returns the difference that a call makes: its first lines, or all with limit 0. What the model has written
// cannot steer the terminal.
func EditLines(e code.Edit, limit int) (all []EditLine) {
	lines, isCut := e.Lines, false
	if limit > 0 {
		lines, isCut = e.Preview(limit)
	}
	for _, l := range lines {
		x := EditLine{"  ", view.Faint}
		switch l.Kind {
		case code.EditAdded:
			x = EditLine{"+ ", view.Good}
		case code.EditRemoved:
			x = EditLine{"- ", view.Bad}
		case code.EditGap:
			x.Text = "... "
		}
		x.Text = strings.TrimRight(x.Text+strings.ReplaceAll(text.Clean(l.Text), "\t", "    "), " ")
		all = append(all, x)
	}
	if isCut {
		all = append(all, EditLine{"...", view.Faint})
	}
	return all
}

// EditRows is EditLines as rows of less than width columns, each behind an indent.
func EditRows(p view.Paint, e code.Edit, limit, indent, width int) (rows []string) {
	for _, l := range EditLines(e, limit) {
		rows = append(rows, strings.Repeat(" ", indent)+p.In(l.Tone, text.CutColumns(l.Text, max(width-1-indent, 8))))
	}
	return rows
}
