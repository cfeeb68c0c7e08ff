package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/difflines"
	"muster/internal/highlight"
	"muster/internal/text"
)

// leastNumbered is the width from which a terminal has room for the numbers of lines.
const leastNumbered = 60

// tabStop is how many columns a tab reaches to at most.
const tabStop = 4

// DiffLook is how the lines of a difference are drawn: with their old and new numbers, the sign, and the text in which
// changed words stand out. Old text stands before new text, as the lines come.
type DiffLook struct {
	Paint
	// Old and New are how many columns the numbers take; 0: they are not drawn.
	Old, New int
}

// NewDiffLook returns the look of lines on a terminal of a width. A narrow one has no numbers, and neither have lines
// whose numbers are unknown.
func NewDiffLook(p Paint, lines []difflines.Line, width int) DiffLook {
	d := DiffLook{Paint: p}
	if width < leastNumbered {
		return d
	}
	old, new := 0, 0
	for i := range lines {
		old, new = max(old, lines[i].Old), max(new, lines[i].New)
	}
	for _, x := range []struct {
		columns *int
		most    int
	}{{&d.Old, old}, {&d.New, new}} {
		if x.most > 0 {
			*x.columns = len(strconv.Itoa(x.most))
		}
	}
	return d
}

// WithOneNumber returns the look with one column of numbers, in which a removed line has its old one. Numbers have two
// columns at least, so that most differences stand in the same column.
func (d DiffLook) WithOneNumber() DiffLook {
	if d.Old+d.New > 0 {
		d.Old, d.New = 0, max(d.Old, d.New, 2)
	}
	return d
}

// NumberColumns returns how many columns Numbers takes.
func (d DiffLook) NumberColumns() (n int) {
	for _, columns := range []int{d.Old, d.New} {
		if columns > 0 {
			n += columns + 1
		}
	}
	return n
}

// Numbers returns the numbers of a line, with a blank behind each. Heads have none.
func (d DiffLook) Numbers(l difflines.Line) string {
	if !l.IsCode() {
		return ""
	}
	var b strings.Builder
	if d.Old == 0 && l.Kind == difflines.Removed {
		l.New = l.Old
	}
	for _, x := range []struct{ columns, number int }{{d.Old, l.Old}, {d.New, l.New}} {
		if x.columns > 0 && x.number > 0 {
			fmt.Fprintf(&b, "%*d ", x.columns, x.number)
		} else if x.columns > 0 {
			fmt.Fprintf(&b, "%*s ", x.columns, "")
		}
	}
	return d.In(Faint, b.String())
}

// Text returns a line behind its sign, cut to columns; 0: all of it. Tabs become blanks up to the next tab stop. What
// the line holds cannot steer the terminal.
func (d DiffLook) Text(l difflines.Line, columns int) string {
	base, word, colours := DiffCodes[l.Kind], "", highlight.Colours
	if b := d.band(l.Kind); b != nil {
		base, word = b.line, b.word
		if !d.IsLight() {
			colours = highlight.Bright
		}
	}
	spans, rest := l.Spans, l.Text
	if spans == nil {
		spans = []difflines.Span{{Len: len(rest)}}
	}
	type piece struct{ code, text string }
	before := l.Sign()
	if l.Kind == difflines.Gap {
		before = "..."
		if l.Text != "" {
			before += " "
		}
	}
	pieces, width := []piece{{base, before}}, 0
	for _, x := range spans {
		code := base
		if l.IsCode() {
			code = strings.Trim(base+";"+colours[x.Code], ";")
		}
		if x.IsChanged {
			code += ";" + word
		}
		// Tabs are counted from the first character of the text, so that the sign does not move what stands behind
		// them.
		shown := expandTabs(text.Clean(rest[:x.Len]), width)
		width, rest = width+text.Columns(shown), rest[x.Len:]
		if last := &pieces[len(pieces)-1]; last.code == code {
			last.text += shown
		} else {
			pieces = append(pieces, piece{code, shown})
		}
	}
	room, dots := columns, ""
	if width += len(before); columns > 0 && width > columns {
		room, dots = columns-len("..."), "..."
	}
	var b strings.Builder
	for _, x := range pieces {
		if n := text.Columns(x.text); columns > 0 && n > room {
			b.WriteString(d.code(x.code, ansi.TruncateWc(x.text, max(room, 0), "")))
			break
		} else {
			room -= n
		}
		b.WriteString(d.code(x.code, x.text))
	}
	return b.String() + d.code(base, dots)
}

// DiffCodes are the SGR codes of the lines of a difference.
var DiffCodes = map[difflines.Kind]string{difflines.File: "1", difflines.Hunk: "36", difflines.Meta: toneCodes[Faint],
	difflines.Gap: toneCodes[Faint], difflines.Removed: toneCodes[Bad], difflines.Added: toneCodes[Good]}

// band is the ground of a line that is added or removed, and of the words in it that were changed, as SGR codes. It has
// a colour of its own for plain text: the ground of the terminal may be another one than it seems.
type band struct{ line, word string }

// bands are those on a dark ground and on a light one, with 256 colours, and then with all of them.
var bands = map[difflines.Kind][4]band{
	difflines.Added: {{"38;5;253;48;5;22", "48;5;28"}, {"38;5;235;48;5;194", "48;5;157"},
		{"38;5;253;48;2;4;44;12", "48;2;8;92;24"}, {"38;5;235;48;2;224;246;224", "48;2;172;230;172"}},
	difflines.Removed: {{"38;5;253;48;5;52", "48;5;88"}, {"38;5;235;48;5;224", "48;5;217"},
		{"38;5;253;48;2;62;8;8", "48;2;124;20;20"}, {"38;5;235;48;2;253;230;230", "48;2;246;188;188"}},
}

// band returns the band of the lines of a kind, or nil.
func (d DiffLook) band(k difflines.Kind) *band {
	all, ok := bands[k]
	if !ok || !d.IsOn() {
		return nil
	}
	at := 0
	if d.IsLight() {
		at++
	}
	if d.names.hasAll {
		at += 2
	}
	return &all[at]
}

// filled returns a row of a line whose band goes to the end of the columns.
func (d DiffLook) filled(l difflines.Line, row string, columns int) string {
	if d.band(l.Kind) != nil {
		row += d.onBand(l, blanks(columns-ansi.StringWidthWc(row)))
	}
	return row
}

// onBand returns a text on the band of a line, if that has one.
func (d DiffLook) onBand(l difflines.Line, text string) string {
	if b := d.band(l.Kind); b != nil {
		return d.code(b.line, text)
	}
	return text
}

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

// expandTabs returns a text that begins in a column with blanks in the place of its tabs.
func expandTabs(s string, column int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			n := tabStop - column%tabStop
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		b.WriteString(part)
		column += text.Columns(part)
	}
	return b.String()
}

// Row returns a line with its numbers, cut to columns; 0: all of it.
func (d DiffLook) Row(l difflines.Line, columns int) string {
	if columns > 0 {
		columns = max(columns-d.NumberColumns(), 1)
	}
	return d.Numbers(l) + d.filled(l, d.Text(l, columns), columns)
}

// maxWrapped is how many bytes of a line are wrapped. A longer one is data.
const maxWrapped = 400

// Rows is Row, but wraps the line, with its indentation before each further row.
func (d DiffLook) Rows(l difflines.Line, columns int) []string {
	sign, numbers := l.Sign(), d.NumberColumns()
	room := columns - numbers - len(sign)
	if room < 8 || sign == "" || len(l.Text) > maxWrapped || text.Columns(d.Text(l, 0)) <= columns-numbers {
		return []string{d.Row(l, columns)}
	}
	// The further rows are indented as the line is.
	words := l
	words.Text = strings.TrimLeft(l.Text, " \t")
	n := len(l.Text) - len(words.Text)
	indent := expandTabs(l.Text[:n], 0)
	indent = indent[:min(len(indent), room/2)]
	words.Spans = slices.Clone(l.Spans)
	for n > 0 && len(words.Spans) > 0 {
		cut := min(n, words.Spans[0].Len)
		n -= cut
		if words.Spans[0].Len -= cut; words.Spans[0].Len == 0 {
			words.Spans = words.Spans[1:]
		}
	}
	rows := text.WrapColoured(d.Text(words, 0), room-len(indent), d.IsOn())
	for i := range rows {
		before := d.Numbers(l)
		if i == 0 {
			rows[i] = strings.Replace(rows[i], sign, sign+indent, 1)
		} else {
			before = blanks(numbers)
			rows[i] = d.onBand(l, blanks(len(sign)+len(indent))) + rows[i]
		}
		rows[i] = before + d.filled(l, rows[i], columns-numbers)
	}
	return rows
}

// fileHead is the head of a file on a terminal: its name, and how many of the lines after it are added and removed.
func (d DiffLook) fileHead(l difflines.Line, after []difflines.Line) string {
	added, removed := 0, 0
	for _, x := range after {
		if x.Kind == difflines.File {
			break
		}
		switch x.Kind {
		case difflines.Added:
			added++
		case difflines.Removed:
			removed++
		}
	}
	return d.Bold(text.OneLine(l.File)) + d.Counts(fmt.Sprintf("  +%d -%d", added, removed))
}

// isKnown reports whether a head says only what the head of the file says on a terminal.
func isKnown(l difflines.Line) bool {
	return l.Kind == difflines.Meta && (strings.HasPrefix(l.Text, "index ") || strings.HasPrefix(l.Text, "--- ") ||
		strings.HasPrefix(l.Text, "+++ "))
}

// Diff returns the lines of a difference as text, with what below returns for a line, from 0; nil: nothing. Where there
// is no terminal, it is what git diff prints, so that other programs take it.
func Diff(s Screen, lines []difflines.Line, below func(row int) string) string {
	if s.IsOn() && s.Width > 0 {
		difflines.Mark(lines)
	}
	look := NewDiffLook(s.Paint, lines, s.Width)
	var b strings.Builder
	for row, l := range lines {
		switch {
		case s.Width == 0:
			end := l.Text[len(strings.TrimSuffix(l.Text, "\r")):]
			b.WriteString(s.code(DiffCodes[l.Kind], l.Sign()+text.Clean(l.Text)) + end + "\n")
		case isKnown(l):
		case l.Kind == difflines.File && l.File != "":
			if row > 0 {
				b.WriteString("\n")
			}
			b.WriteString(look.fileHead(l, lines[row+1:]) + "\n")
		case len(l.Text) > maxWrapped:
			b.WriteString(look.Row(l, 0) + "\n") // whole
		default:
			b.WriteString(strings.Join(look.Rows(l, s.Width-1), "\n") + "\n")
		}
		if below != nil {
			b.WriteString(below(row))
		}
	}
	return b.String()
}
