package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// layout is the input broken into rows of the screen, and the cursor's place among them. It is made anew for each frame
// and each vertical move, because an input is short.
type layout struct {
	rows   []row
	indent int // columns before each row: the prompt's width
	x, y   int // where the cursor is: a column of the screen, an index into rows
}

// row is a part of the text: text[start:end].
type row struct{ start, end int }

// newLayout breaks the text into rows of at most width columns, between words. The blanks at a break stay at the end
// of the row, so each index of the text is in exactly one row.
func newLayout(b *buffer, indent, width int) layout {
	l := layout{indent: indent}
	start := 0
	for _, line := range splitLines(b.text) {
		for {
			_, next := breakAt(line, max(1, width-indent))
			l.rows = append(l.rows, row{start, start + next})
			if b.cursor >= start && b.cursor <= start+next { // at a break the next row takes it over
				l.x, l.y = indent+ansi.StringWidthWc(visible(line[:b.cursor-start])), len(l.rows)-1
			}
			start += next
			if line = line[next:]; len(line) == 0 {
				break
			}
		}
		start++ // the newline
	}
	return l
}

// clusterAt returns the index of the cluster nearest to column x of row y.
func (l layout) clusterAt(b *buffer, x, y int) int {
	column := l.indent
	r := l.rows[y]
	for i := r.start; i < r.end; i++ {
		if column += b.text[i].width; column > x {
			return i
		}
	}
	if y < len(l.rows)-1 && l.rows[y+1].start == r.end && r.end > r.start {
		return r.end - 1 // a wrapped row: its end is the next row's beginning
	}
	return r.end
}

// rowTexts returns the rows from index from to index to. The prompt stands before the first row of all; the others are
// indented by its width.
func (l layout) rowTexts(b *buffer, prompt string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		lead := strings.Repeat(" ", l.indent)
		if i == 0 {
			lead = prompt
		}
		out = append(out, lead+visible(b.text[l.rows[i].start:l.rows[i].end]))
	}
	return out
}
