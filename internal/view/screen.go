package view

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"muster"
	"muster/internal/text"
)

// Tone is what a colour means.
type Tone int

// The tones. A colour is never the only sign of anything: the words say the same.
const (
	Plain Tone = iota
	Good       // landed, passed
	Bad        // returned, broken, given up
	Yours      // waits for the user, and nothing else
	Faint      // said for completeness
)

// Amber is the SGR code of what waits for the user. It is read on dark and on light ground.
const Amber = "38;5;172"

// Screen is how something is drawn: whether in colour, and how wide. Width 0 is no terminal. What is drawn is one
// string that is written at once, so that a reader of a pipe never sees a part of it.
type Screen struct {
	Paint
	Width int
}

// toneCodes are the SGR codes of the tones: green, red, amber and faint.
var toneCodes = [...]string{Plain: "", Good: "32", Bad: "31", Yours: Amber, Faint: "2"}

// TerminalWidth returns the number of columns of w; ok is false if w is no terminal. A terminal that does not know its
// size, as over some serial lines, counts as 80 columns wide.
func TerminalWidth(w io.Writer) (width int, ok bool) {
	if below, ok := w.(interface{ Unwrap() io.Writer }); ok { // one that hides secrets
		w = below.Unwrap()
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	return width, true
}

// TerminalHeight returns the number of rows of w, and 0 where it is not known.
func TerminalHeight(w io.Writer) int {
	if below, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = below.Unwrap()
	}
	if f, ok := w.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil {
			return height
		}
	}
	return 0
}

// wrapped returns a sentence that is broken between words where it is wider than the terminal.
func (s Screen) wrapped(sentence string) string {
	if s.Width == 0 {
		return sentence
	}
	return strings.Join(text.Wrap(sentence, max(s.Width-1, 20)), "\n")
}

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
	// A status that is neither is plain: it says only how far something is.
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
	return Cell{Text: text.OneLine(string(name)), Who: text.OneLine(string(name))}
}

// Table is rows under titles. A column whose title starts with > is aligned to the right.
type Table struct {
	// Titles are the titles of the columns. Without any text in them, no line of titles is printed.
	Titles []string
	Rows   [][]Cell
	// Wide is the column that is cut when the table is wider than the terminal; -1 means none.
	Wide int
	// Least are the columns to leave out, in this order, if the table is too wide even with the least wide column.
	Least []int
	// Wraps are columns whose cells take several lines, in place of Wide, where the table is wider than the terminal.
	Wraps []int
}

// Row adds a row. What is no Cell is printed as one line that cannot steer a terminal, so a caller may pass names and
// texts of models and files as they are. A text whose blanks count, such as an indented one or a path, is passed as a
// Cell; its caller makes it safe.
func (t *Table) Row(cells ...any) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		var ok bool
		if row[i], ok = c.(Cell); !ok {
			row[i].Text = text.OneLine(fmt.Sprint(c))
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
	for _, row := range t.unfolded(all, widths) {
		start := len(lines)
		for i, c := range row {
			if widths[i] < 0 {
				continue
			}
			shown := text.CutColumns(c.Text, widths[i])
			fill := strings.Repeat(" ", max(widths[i]-text.Columns(shown), 0))
			painted := s.In(c.Tone, shown)
			if c.Who != "" {
				painted = s.Who(c.Who, shown)
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

// leastWide is the least width of the wide column. A shorter text cannot be recognised.
const leastWide = 12

// unfolded returns rows with one line in each cell: those of Wraps that are wider than their column go on in rows of
// their own.
func (t Table) unfolded(all [][]Cell, widths []int) (rows [][]Cell) {
	if len(t.Wraps) == 0 {
		return all
	}
	for _, row := range all {
		first := len(rows)
		rows = append(rows, slices.Clone(row))
		for _, i := range t.Wraps {
			for n, line := range text.Wrap(row[i].Text, widths[i]) {
				if first+n == len(rows) {
					rows = append(rows, make([]Cell, len(row)))
				}
				cell := row[i]
				cell.Text = line
				rows[first+n][i] = cell
			}
		}
	}
	return rows
}

// columnWidths returns the width of each column: that of its widest cell. If they do not fit together, the wide column
// gives up what is missing, but keeps leastWide columns, and least columns have the width -1: they are left out.
func (t Table) columnWidths(all [][]Cell, width int) []int {
	widths := make([]int, len(t.Titles))
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], text.Columns(c.Text))
		}
	}
	if width == 0 || t.Wide < 0 && len(t.Wraps) == 0 || len(widths) == 0 {
		return widths
	}
	sum := len(columnGap) * (len(widths) - 1)
	for _, n := range widths {
		sum += n
	}
	for _, i := range t.Least {
		if sum-max(widths[t.Wide]-leastWide, 0) < width {
			break
		}
		sum -= widths[i] + len(columnGap)
		widths[i] = -1
	}
	over := sum - (width - 1)
	switch {
	case over <= 0:
	case len(t.Wraps) == 0:
		widths[t.Wide] = max(widths[t.Wide]-over, leastWide)
	default:
		room := -over
		for _, i := range t.Wraps {
			room += widths[i]
		}
		// Narrow columns get their width first; wide ones share the rest.
		byNeed := slices.SortedFunc(slices.Values(t.Wraps), func(a, b int) int { return widths[a] - widths[b] })
		for n, i := range byNeed {
			widths[i] = min(widths[i], max(room/(len(byNeed)-n), leastWide))
			room -= widths[i]
		}
	}
	return widths
}
