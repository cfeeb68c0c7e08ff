package terminal

import (
	"strings"
	"unicode/utf8"
)

// stream is the text of a model as it comes.
type stream struct {
	cut     string    // the beginning of a character whose rest has not come yet
	growing []cluster // what has been shown of the current row
}

// add gives the rows that text has completed.
func (s *stream) add(text string, width int) []string {
	text = s.cut + text
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if utf8.RuneStart(text[len(text)-i]) {
			if !utf8.FullRuneInString(text[len(text)-i:]) {
				whole = len(text) - i
			}
			break
		}
	}
	s.cut = text[whole:]
	// Split again from the text: a combining mark may have come after its letter.
	line := ""
	for _, c := range s.growing {
		line += c.text
	}
	return s.set(clusters(line+clean(text[:whole])), width)
}

func (s *stream) set(all []cluster, width int) []string {
	var rows []string
	lines := split(all)
	for i, line := range lines {
		for {
			end, next := breakAt(line, width)
			if next >= len(line) {
				break
			}
			rows = append(rows, shown(line[:end]))
			line = line[next:]
		}
		if i == len(lines)-1 {
			s.growing = line // with the blanks at its end: what comes next may still fit
		} else {
			rows = append(rows, trimmed(line))
		}
	}
	return rows
}

// trimmed is a row without the blanks at its end, which may stand over the width.
func trimmed(row []cluster) string { return strings.TrimRight(shown(row), " ") }

// open says whether a row is growing.
func (s *stream) open() bool { return len(s.growing) > 0 }

// flush gives the last row, if there is one.
func (s *stream) flush() []string {
	row := s.growing
	s.growing, s.cut = nil, ""
	if len(row) == 0 {
		return nil
	}
	return []string{trimmed(row)}
}
