package terminal

import (
	"strings"
	"unicode/utf8"
)

// stream wraps a model's text while it arrives in pieces. A row that is complete is given away at once, so only the row
// that grows is kept.
type stream struct {
	// partial is the beginning of a character whose other bytes have not come yet.
	partial string
	// growing is what is shown of the current row.
	growing []cluster
}

// add appends text and returns the rows that are complete now. However the text is cut into pieces, the rows are the
// same.
func (s *stream) add(text string, width int) []string {
	text = s.partial + text
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if utf8.RuneStart(text[len(text)-i]) {
			if !utf8.FullRuneInString(text[len(text)-i:]) {
				whole = len(text) - i
			}
			break
		}
	}
	s.partial = text[whole:]
	// The row that grows is split again together with the new text: a combining mark may have come after its letter.
	lines := splitLines(clusters(textOf(s.growing) + clean(text[:whole])))
	var rows []string
	for i, line := range lines {
		for {
			end, next := breakAt(line, width)
			if next >= len(line) {
				break
			}
			rows = append(rows, visible(line[:end]))
			line = line[next:]
		}
		if i == len(lines)-1 {
			s.growing = line // with the blanks at its end: what comes next may still fit
		} else {
			rows = append(rows, withoutTrailingBlanks(line))
		}
	}
	return rows
}

// withoutTrailingBlanks returns a row without the blanks at its end, which may exceed the width.
func withoutTrailingBlanks(row []cluster) string { return strings.TrimRight(visible(row), " ") }

// isGrowing reports whether a row has begun and not ended.
func (s *stream) isGrowing() bool { return len(s.growing) > 0 }

// flush ends the text and returns the last row, if there is one.
func (s *stream) flush() []string {
	row := s.growing
	s.growing, s.partial = nil, ""
	if len(row) == 0 {
		return nil
	}
	return []string{withoutTrailingBlanks(row)}
}
