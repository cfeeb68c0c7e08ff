package text

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Break returns where the first row of a line ends and where the next one begins, so that the first has at most width
// columns. A line breaks between words, and between wide characters, which have no blanks between them. The blanks at
// the break are in neither row. at describes the n characters of the line. If the whole line fits, both results are n.
// A row has at least one character, also where that does not fit.
func Break(n, width int, at func(i int) (columns int, isBlank bool)) (end, next int) {
	used, over := 0, -1
	hasBefore, isBlankBefore := false, false // something is seen before the character, and it is a blank
	for i := range n {
		columns, isBlank := at(i)
		if columns == 0 { // a colour
			continue
		}
		// Blanks at the beginning indent the line, and are no place to break.
		if isBlank && hasBefore {
			if !isBlankBefore {
				end = i
			}
			next = i + 1
		} else if columns == 2 && hasBefore && !isBlankBefore && used <= width {
			end, next = i, i
		}
		hasBefore, isBlankBefore = true, isBlank
		if used += columns; used > width && over < 0 {
			over = i
		}
		if over < 0 || isBlank {
			continue
		}
		if end == 0 { // a word that is longer than the row
			end = max(over, 1)
			next = end
		}
		return end, next
	}
	if over >= 0 { // only blanks stand over
		return end, n
	}
	return n, n
}

// character is what people see as one, or a colour sequence, which has no columns.
type character struct {
	text    string
	columns int
}

// Wrap breaks a line without escape sequences into rows of at most width columns, as Break does.
func Wrap(line string, width int) []string {
	if Columns(line) <= width {
		return []string{line}
	}
	return wrap(characters(nil, line), width)
}

// WrapColoured breaks what Coloured returns into rows of at most width columns: at its newlines, and as Break does.
// Each row resets the colours that it leaves on, and the next row turns them on again, so that anything may be drawn
// between two rows.
func WrapColoured(s string, width int, colour bool) (rows []string) {
	active := ""
	for line := range strings.SplitSeq(Coloured(strings.TrimSuffix(s, "\n"), colour), "\n") {
		for _, row := range wrap(colouredCharacters(line), width) {
			before := active
			for rest := row; ; {
				i := strings.IndexByte(rest, ansi.ESC)
				if i < 0 {
					break
				}
				end := i + strings.IndexByte(rest[i:], 'm') + 1
				if seq := rest[i:end]; seq == "\x1b[m" || seq == "\x1b[0m" {
					active = ""
				} else {
					active += seq
				}
				rest = rest[end:]
			}
			if row = before + row; active != "" {
				row += "\x1b[m"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Coloured returns text without what could steer a terminal. Colour sequences stay where colour is wanted. A tab
// becomes blanks.
func Coloured(s string, colour bool) string {
	var b strings.Builder
	s = strings.ToValidUTF8(s, "\uFFFD")
	for {
		plain := s
		next := strings.IndexByte(s, ansi.ESC)
		if next >= 0 {
			plain = s[:next]
		}
		b.WriteString(strings.ReplaceAll(Clean(plain), "\t", "    "))
		if next < 0 {
			return b.String()
		}
		seq, _, n, _ := ansi.DecodeSequence(s[next:], ansi.NormalState, nil)
		if colour && isColour(seq) {
			b.WriteString(seq)
		}
		s = s[next+max(n, 1):]
	}
}

// isColour reports whether a sequence is SGR: ESC [, numbers, m.
func isColour(seq string) bool {
	parameters, ok := strings.CutPrefix(seq, "\x1b[")
	parameters, isSGR := strings.CutSuffix(parameters, "m")
	return ok && isSGR && strings.Trim(parameters, "0123456789;:") == ""
}

// wrap breaks a line into rows.
func wrap(line []character, width int) (rows []string) {
	for {
		end, next := Break(len(line), width, func(i int) (int, bool) { return line[i].columns, line[i].text == " " })
		var b strings.Builder
		for _, c := range line[:end] {
			b.WriteString(c.text)
		}
		rows = append(rows, b.String())
		if line = line[next:]; len(line) == 0 {
			return rows
		}
	}
}

// characters appends the characters of a text without escape sequences.
func characters(to []character, s string) []character {
	for len(s) > 0 {
		c, columns := FirstCharacter(s)
		to, s = append(to, character{c, columns}), s[len(c):]
	}
	return to
}

// colouredCharacters returns the characters of a text that has no other sequences than colours.
func colouredCharacters(s string) (all []character) {
	for {
		plain, rest, ok := strings.Cut(s, "\x1b")
		if all = characters(all, plain); !ok {
			return all
		}
		end := strings.IndexByte(rest, 'm') + 1
		all = append(all, character{text: "\x1b" + rest[:end]})
		s = rest[end:]
	}
}

// Packed joins phrases into rows of at most width columns, with a separator between those in one row. A phrase is
// broken only where it is longer than a row.
func Packed(phrases []string, separator string, width int) (rows []string) {
	for _, phrase := range phrases {
		if n := len(rows) - 1; n >= 0 && Columns(rows[n]+separator+phrase) <= width {
			rows[n] += separator + phrase
		} else {
			rows = append(rows, Wrap(phrase, width)...)
		}
	}
	return rows
}
