package face

import (
	"slices"
	"strings"

	"muster/internal/difflines"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
)

// PreviewLines is how many lines of an edit stand below its call.
const PreviewLines = 8

// EditLines returns the difference that a call makes: its first lines, or all with limit 0. how says at the end how to
// see the rest.
func EditLines(e code.Edit, limit int, how string) []difflines.Line {
	if limit == 0 {
		return e.Lines
	}
	lines := e.Preview(limit)
	more := e.Added + e.Removed
	for _, l := range lines {
		if l.Kind == difflines.Added || l.Kind == difflines.Removed {
			more--
		}
	}
	what := "more changed line"
	if e.IsNew {
		what = "more line"
	}
	if more > 0 {
		said := strings.TrimRight(text.Count(more, what)+"  "+how, " ")
		lines = append(lines, difflines.Line{Kind: difflines.Gap, Text: said})
	}
	return lines
}

// EditRows is EditLines as rows of less than width columns, each behind an indent. A line has one number: its place in
// the file after the edit or, where it is removed, before. A file that is new has no signs.
func EditRows(p view.Paint, e code.Edit, limit int, how string, indent, width int) (rows []string) {
	lines := EditLines(e, limit, how)
	if e.IsNew {
		lines = slices.Clone(lines) // a whole file is read as code
		for i := range lines {
			if lines[i].Kind == difflines.Added {
				lines[i].Kind = difflines.Context
			}
		}
	}
	look := view.NewDiffLook(p, lines, width).WithOneNumber()
	for _, l := range lines {
		for _, row := range look.Rows(l, max(width-1-indent, 8)) {
			rows = append(rows, strings.Repeat(" ", indent)+row)
		}
	}
	return rows
}

// OutputRows returns the lines of an output as rows of less than width columns, each behind an indent.
func OutputRows(output string, indent, width int) (rows []string) {
	for line := range strings.SplitSeq(output, "\n") {
		if line = strings.TrimRight(text.Clean(strings.ReplaceAll(line, "\t", "    ")), " "); line != "" {
			rows = append(rows, strings.Repeat(" ", indent)+text.CutColumns(line, max(width-1-indent, 8)))
		}
	}
	return rows
}
