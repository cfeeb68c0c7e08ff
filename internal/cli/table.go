package cli

import (
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// cell is one field of a table.
type cell struct {
	text string
	tone tone
	who  string // colours it as this name
}

func text(s string) cell { return cell{text: s} }

// texts are cells without a colour.
func texts(fields ...string) []cell {
	row := make([]cell, len(fields))
	for i, s := range fields {
		row[i].text = s
	}
	return row
}

// table is rows under titles, aligned; a column whose title starts with > is aligned to the right.
type table struct {
	titles []string
	rows   [][]cell
	gap    int // between columns, 2 if zero
	// wide is the column that is cut when the table is wider than a terminal; -1: none.
	wide int
}

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// write prints the table; width 0 means that nothing is cut.
func (t *table) write(w io.Writer, p paint, width int) error {
	titles := make([]cell, len(t.titles))
	right := make([]bool, len(t.titles))
	headed := false
	for i, s := range t.titles {
		titles[i].text, right[i] = strings.CutPrefix(s, ">")
		headed = headed || titles[i].text != ""
	}
	all := t.rows
	if headed {
		all = append([][]cell{titles}, t.rows...)
	}
	gap := t.gap
	if gap == 0 {
		gap = 2
	}
	widths := t.measure(all, width, gap)
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, c := range row {
			s := runewidth.Truncate(c.text, widths[i], "...")
			fill := strings.Repeat(" ", max(widths[i]-columns(s), 0))
			painted := p.in(c.tone, s)
			if c.who != "" {
				painted = p.who(c.who, s)
			}
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			if right[i] {
				line.WriteString(fill + painted)
			} else {
				line.WriteString(painted + fill)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// measure is how wide each column is.
func (t *table) measure(all [][]cell, width, gap int) []int {
	widths := make([]int, len(t.titles))
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], columns(c.text))
		}
	}
	if width == 0 || t.wide < 0 || len(widths) == 0 {
		return widths
	}
	sum := gap * (len(widths) - 1)
	for _, n := range widths {
		sum += n
	}
	if over := sum - (width - 1); over > 0 {
		widths[t.wide] = max(widths[t.wide]-over, 12)
	}
	return widths
}

// pad fills s with spaces to the width n.
func pad(s string, n int) string { return runewidth.FillRight(s, n) }

// cut shortens s to the width n. What it ends with then are three dots, also where dots were cut.
func cut(s string, n int) string {
	if columns(s) <= n || n <= 3 {
		return runewidth.Truncate(s, n, "...")
	}
	return strings.TrimRight(runewidth.Truncate(s, n-3, ""), " .") + "..."
}

// columns is how wide s is on a terminal.
func columns(s string) int { return runewidth.StringWidth(s) }
