package face

import (
	"strings"

	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
)

// PreviewLines is how many lines of an edit stand below its call.
const PreviewLines = 8

// EditRows returns the first lines of the difference that a call makes as rows of less than width columns, each behind
// an indent. What the model has written cannot steer the terminal.
func EditRows(p view.Paint, e code.Edit, limit, indent, width int) (rows []string) {
	lines, isCut := e.Preview(limit)
	for _, l := range lines {
		sign, tone := "  ", view.Faint
		switch l.Kind {
		case code.EditAdded:
			sign, tone = "+ ", view.Good
		case code.EditRemoved:
			sign, tone = "- ", view.Bad
		case code.EditGap:
			sign = "..."
		}
		row := sign + strings.ReplaceAll(text.Clean(l.Text), "\t", "    ")
		rows = append(rows, strings.Repeat(" ", indent)+p.In(tone, text.CutColumns(row, max(width-1-indent, 8))))
	}
	if isCut {
		rows = append(rows, strings.Repeat(" ", indent)+p.In(view.Faint, "..."))
	}
	return rows
}
