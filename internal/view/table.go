package view

import (
	"bytes"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Cell is one field of a table. Its text has one line and no control characters.
type Cell struct {
	Text string
	Tone Tone
	Who  string // colours it as this name, instead of in its tone
}

// Text returns a cell without a colour.
func Text(s string) Cell { return Cell{Text: s} }

// Table is rows under titles. A column whose title starts with > is aligned to the right.
type Table struct {
	// Titles are the titles of the columns. Without any text in them, no line of titles is printed.
	Titles []string
	Rows   [][]Cell
	// Wide is the column that is cut when the table is wider than the terminal; -1 means none.
	Wide int
}

// Row adds a row.
func (t *Table) Row(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// columnGap stands between two columns.
const columnGap = "  "

// Write prints the table. With width 0 nothing is cut. The table is built whole and written once, so that a reader of
// a pipe never sees a part of it.
func (t *Table) Write(w io.Writer, p Paint, width int) error {
	_, err := io.WriteString(w, t.text(p, width))
	return err
}

// text returns the lines of the table, each with its newline. No line ends with blanks, so that a table that is copied
// or compared has only what is seen.
func (t *Table) text(p Paint, width int) string {
	titles := make([]Cell, len(t.Titles))
	right := make([]bool, len(t.Titles))
	headed := false
	for i, s := range t.Titles {
		titles[i].Text, right[i] = strings.CutPrefix(s, ">")
		headed = headed || titles[i].Text != ""
	}
	all := t.Rows
	if headed {
		all = append([][]Cell{titles}, t.Rows...)
	}
	// A cell is padded outside of its colour, so that a coloured background would not reach into the gap.
	widths := t.columnWidths(all, width)
	var lines []byte
	for _, row := range all {
		start := len(lines)
		for i, c := range row {
			s := c.Text
			if columns(s) > widths[i] {
				s = runewidth.Truncate(s, widths[i], "...")
			}
			fill := strings.Repeat(" ", max(widths[i]-columns(s), 0))
			painted := p.In(c.Tone, s)
			if c.Who != "" {
				painted = p.Who(c.Who, s)
			}
			if right[i] {
				painted, fill = fill, painted
			}
			lines = append(append(append(lines, painted...), fill...), columnGap...)
		}
		lines = append(lines[:start+len(bytes.TrimRight(lines[start:], " "))], '\n')
	}
	return string(lines)
}

// columnWidths returns the width of each column: that of its widest cell. If they do not fit together, the wide column
// gives up what is missing, but keeps 12 columns, because less of a text says nothing.
func (t *Table) columnWidths(all [][]Cell, width int) []int {
	widths := make([]int, len(t.Titles))
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], columns(c.Text))
		}
	}
	if width == 0 || t.Wide < 0 || len(widths) == 0 {
		return widths
	}
	sum := len(columnGap) * (len(widths) - 1)
	for _, n := range widths {
		sum += n
	}
	if over := sum - (width - 1); over > 0 {
		widths[t.Wide] = max(widths[t.Wide]-over, 12)
	}
	return widths
}

// Pad fills s with spaces to n columns. A text that is wider stays as it is.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(n-columns(s), 0)) }

// Cut shortens s to n columns. A shortened text ends with exactly three dots, also where it is cut behind a full stop.
func Cut(s string, n int) string {
	switch {
	case columns(s) <= n:
		return s
	case n <= 3:
		return runewidth.Truncate(s, n, "...")
	}
	return strings.TrimRight(runewidth.Truncate(s, n-3, ""), " .") + "..."
}

// columns returns the width of s on a terminal. East Asian characters take two columns, combining ones none.
func columns(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return runewidth.StringWidth(s)
		}
	}
	return len(s) // plain ASCII: what nearly all is
}
