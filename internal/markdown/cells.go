package markdown

import (
	"slices"
	"strings"

	"muster/internal/highlight"
	"muster/internal/text"
)

// style is how text looks. Several may hold at once.
type style uint16

const (
	bold style = 1 << iota
	italic
	faint
	code
	added
	removed
	keyword
	quoted
	number
)

// codeStyles are the styles of the pieces of code.
var codeStyles = [...]style{highlight.Plain: 0, highlight.Comment: faint, highlight.String: quoted,
	highlight.Keyword: keyword, highlight.Number: number}

// codes are the numbers of SGR of the styles. They are those that the lines about the team have, too.
var codes = []struct {
	style  style
	number string
}{{bold, ";1"}, {italic, ";3"}, {faint, ";2"}, {code, ";36"}, {added, ";32"}, {removed, ";31"},
	{keyword, ";" + highlight.Colours[highlight.Keyword]}, {quoted, ";" + highlight.Colours[highlight.String]},
	{number, ";" + highlight.Colours[highlight.Number]}}

// cell is one character as people see it, of one or more runes.
type cell struct {
	text  string
	width int // columns
	style style
}

// row is a row of the terminal, or a line that has not been broken into rows yet.
type row []cell

// cells returns s as cells. What could steer the terminal is left out: entities such as &#27; come this far.
func cells(s string, look style) (all row) {
	s = strings.ReplaceAll(text.Clean(s), "\t", "    ")
	for len(s) > 0 {
		c := cell{style: look}
		c.text, c.width = text.FirstCharacter(s)
		all, s = append(all, c), s[len(c.text):]
	}
	return all
}

// columns returns how wide a row is.
func (r row) columns() (n int) {
	for _, c := range r {
		n += c.width
	}
	return n
}

// pad returns a row with blanks up to a width, in front of it or behind it.
func (r row) pad(width int, toRight bool) row {
	blanks := cells(strings.Repeat(" ", max(width-r.columns(), 0)), 0)
	if toRight {
		return slices.Concat(blanks, r)
	}
	return slices.Concat(r, blanks)
}

// encode returns a row as it is written to a terminal, without blanks at its end.
func (r row) encode(colour bool) string {
	for len(r) > 0 && r[len(r)-1].text == " " {
		r = r[:len(r)-1]
	}
	var b strings.Builder
	now := style(0)
	change := func(to style) {
		if !colour || to == now {
			return
		}
		// Each change begins with a reset, so that no style outlives its text.
		b.WriteString("\x1b[0")
		for _, c := range codes {
			if to&c.style != 0 {
				b.WriteString(c.number)
			}
		}
		b.WriteString("m")
		now = to
	}
	for _, c := range r {
		change(c.style)
		b.WriteString(c.text)
	}
	change(0)
	return b.String()
}

// wrap breaks a line into rows of at most width columns: at its newlines, between words, and between wide characters,
// which have no blanks between them. Each row has at least one cell, so that it comes to an end.
func (r row) wrap(width int) (rows []row) {
	for {
		i := slices.IndexFunc(r, func(c cell) bool { return c.text == "\n" })
		line := r
		if i >= 0 {
			line = r[:i]
		}
		for {
			at := func(i int) (columns int, isBlank bool) { return line[i].width, line[i].text == " " }
			end, next := text.Break(len(line), width, at)
			rows = append(rows, line[:end])
			if line = line[next:]; len(line) == 0 {
				break
			}
		}
		if i < 0 {
			return rows
		}
		r = r[i+1:]
	}
}

// within returns the rows of something that stands behind a prefix: first before the first row, and rest before the
// others. draw is given the width that is left. Where too little would be left, there is no prefix.
func within(first, rest row, width int, draw func(width int) []row) []row {
	const least = 8
	left := width - first.columns()
	switch {
	case left < least && isBlank(first.encode(false)):
		return draw(width)
	case left < least:
		return append(first.wrap(width), draw(width)...)
	}
	rows := draw(left)
	if len(rows) == 0 {
		rows = []row{nil}
	}
	for i := range rows {
		if i > 0 {
			first = rest
		}
		rows[i] = slices.Concat(first, rows[i])
	}
	return rows
}
