package lineedit

import (
	"strings"

	"muster/internal/text"
)

// Layout is the text broken into rows of the screen, and the position of the cursor. It is made anew for each frame and
// each vertical move, because the text is short.
type Layout struct {
	Rows   []Row
	indent int // columns before each row: the prompt's width
	X, Y   int // where the cursor is: a column of the screen, an index into rows
}

// Row is a part of the text: Text[Start:End].
type Row struct{ Start, End int }

// NewLayout breaks the text into rows of at most width columns, between words. The blanks at a break stay at the end
// of the row, so each index of the text is in exactly one row.
func NewLayout(b *Buffer, indent, width int) Layout {
	l := Layout{indent: indent}
	start := 0
	for _, line := range lines(b.Text) {
		for {
			_, next := text.Break(len(line), max(1, width-indent), func(i int) (int, bool) {
				return line[i].Width, line[i].Shown == " "
			})
			l.Rows = append(l.Rows, Row{start, start + next})
			if b.Cursor >= start && b.Cursor <= start+next { // at a break the next row takes it over
				l.X, l.Y = indent+text.Columns(Shown(line[:b.Cursor-start])), len(l.Rows)-1
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

// ClusterAt returns the index of the cluster nearest to column x of row y.
func (l Layout) ClusterAt(b *Buffer, x, y int) int {
	column := l.indent
	r := l.Rows[y]
	for i := r.Start; i < r.End; i++ {
		if column += b.Text[i].Width; column > x {
			return i
		}
	}
	if y < len(l.Rows)-1 && l.Rows[y+1].Start == r.End && r.End > r.Start {
		return r.End - 1 // a wrapped row: its end is the next row's beginning
	}
	return r.End
}

// Draw returns the rows from index from to index to. The prompt stands before the first row of all; the others are
// indented by its width.
func (l Layout) Draw(b *Buffer, prompt string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		lead := strings.Repeat(" ", l.indent)
		if i == 0 {
			lead = prompt
		}
		out = append(out, lead+Shown(b.Text[l.Rows[i].Start:l.Rows[i].End]))
	}
	return out
}

// lines cuts text at its newlines.
func lines(all []Cluster) [][]Cluster {
	var lines [][]Cluster
	start := 0
	for i, c := range all {
		if c.isNewline() {
			lines = append(lines, all[start:i])
			start = i + 1
		}
	}
	return append(lines, all[start:])
}
