package view

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"muster"
)

// Cell is one field of a table. Its text has one line and no control characters.
type Cell struct {
	Text string
	Tone Tone
	Who  string // colours it as this name, instead of in its tone
}

// Text returns a cell without a colour. Its blanks stay as they are.
func Text(s string) Cell { return Cell{Text: s} }

// Status returns a cell with a status in its colour: good and bad are those that are good and bad news.
func Status[S ~string](s, good S, bad ...S) Cell {
	tone := Plain
	if s == good {
		tone = Good
	} else if slices.Contains(bad, s) {
		tone = Bad
	}
	return Cell{Text: string(s), Tone: tone}
}

// Named returns a cell with a name in its colour.
func Named(name muster.Name) Cell {
	return Cell{Text: OneLine(string(name)), Who: OneLine(string(name))}
}

// Table is rows under titles. A column whose title starts with > is aligned to the right.
type Table struct {
	// Titles are the titles of the columns. Without any text in them, no line of titles is printed.
	Titles []string
	Rows   [][]Cell
	// Wide is the column that is cut when the table is wider than the terminal; -1 means none.
	Wide int
}

// Row adds a row. What is no Cell is printed as one line that cannot steer a terminal.
func (t *Table) Row(cells ...any) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		var ok bool
		if row[i], ok = c.(Cell); !ok {
			row[i].Text = OneLine(fmt.Sprint(c))
		}
	}
	t.Rows = append(t.Rows, row)
}

// columnGap stands between two columns.
const columnGap = "  "

// Draw returns the lines of the table, each with its newline. With width 0 nothing is cut. No line ends with blanks, so
// that a table that is copied or compared has only what is seen.
func (t Table) Draw(s Screen) string {
	all := t.Rows
	if strings.Join(t.Titles, "") != "" {
		titles := make([]Cell, len(t.Titles))
		for i, s := range t.Titles {
			titles[i].Text = strings.TrimPrefix(s, ">")
		}
		all = append([][]Cell{titles}, t.Rows...)
	}
	// A cell is padded outside of its colour, so that a coloured background would not reach into the gap.
	widths := t.columnWidths(all, s.Width)
	var lines []byte
	for _, row := range all {
		start := len(lines)
		for i, c := range row {
			text := c.Text
			if columns(text) > widths[i] {
				text = runewidth.Truncate(text, widths[i], "...")
			}
			fill := strings.Repeat(" ", max(widths[i]-columns(text), 0))
			painted := s.In(c.Tone, text)
			if c.Who != "" {
				painted = s.Who(c.Who, text)
			}
			if strings.HasPrefix(t.Titles[i], ">") {
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
func (t Table) columnWidths(all [][]Cell, width int) []int {
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
