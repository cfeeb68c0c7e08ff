package terminal

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/markdown"
	"muster/internal/text"
)

// tabWidth is how many blanks a tab is shown as.
const tabWidth = 4

// cluster is what the cursor moves over in one step: a grapheme cluster, a newline, a tab or a folded paste. In
// printed text it may also be a colour sequence, which has no width.
type cluster struct {
	// text is what the cluster stands for, and is submitted.
	text string
	// shown is what is drawn for it.
	shown string
	width int // columns
}

// newline is the cluster that ends a line. It takes no column, and is in no row.
var newline = cluster{text: "\n", shown: "\n"}

// clusters splits text that clean has returned.
func clusters(s string) []cluster {
	out := make([]cluster, 0, len(s))
	for len(s) > 0 {
		var c cluster
		switch {
		case s[0] == '\n':
			c = newline
		case s[0] == '\t':
			c = cluster{text: "\t", shown: strings.Repeat(" ", tabWidth), width: tabWidth}
		default:
			c.text, c.width = text.FirstCharacter(s)
			c.shown = c.text
		}
		out = append(out, c)
		s = s[len(c.text):]
	}
	return out
}

// clean removes everything that could steer the terminal, colour sequences included.
func clean(s string) string { return text.Clean(s) }

// cleanPaste is clean for pasted text, in which terminals send \r as the end of a line.
func cleanPaste(s string) string {
	return clean(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}

// splitColoured splits text that may carry SGR colour sequences. It drops all other sequences and control characters,
// and without colour also the colour sequences.
func splitColoured(s string, colour bool) []cluster {
	var out []cluster
	s = strings.ToValidUTF8(s, "\uFFFD")
	for len(s) > 0 {
		next := strings.IndexByte(s, ansi.ESC)
		if next < 0 {
			next = len(s)
		}
		out = append(out, clusters(clean(s[:next]))...)
		if s = s[next:]; s == "" {
			break
		}
		seq, _, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
		if colour && isColourSequence(seq) {
			out = append(out, cluster{text: seq, shown: seq})
		}
		s = s[max(n, 1):]
	}
	return out
}

// isColourSequence reports whether seq is an SGR sequence: ESC [, numbers, m.
func isColourSequence(seq string) bool {
	parameters, ok := strings.CutPrefix(seq, "\x1b[")
	if !ok || !strings.HasSuffix(parameters, "m") {
		return false
	}
	return strings.Trim(parameters[:len(parameters)-1], "0123456789;:") == ""
}

// breakAt returns where the first row of a line ends and where the next row begins. Between them are the blanks at the
// break. If the whole line fits, next is len(line).
func breakAt(line []cluster, width int) (end, next int) {
	column, end, over := 0, 0, -1
	for i, c := range line {
		if c.shown == " " && i > 0 {
			if line[i-1].shown != " " {
				end = i
			}
			next = i + 1
		} else if i > 0 && c.width == 2 && column <= width && line[i-1].shown != " " {
			end, next = i, i // between ideographs, words have no spaces
		}
		if column += c.width; column <= width {
			continue
		}
		if over < 0 {
			over = i
		}
		if c.shown == " " {
			continue
		}
		if end == 0 || isBlank(line[:end]) { // a word longer than the row
			end = max(over, 1)
			next = end
		}
		return end, next
	}
	if column > width { // only blanks stand over
		return end, len(line)
	}
	return len(line), len(line)
}

// isBlank reports whether only blanks would be seen of a line.
func isBlank(line []cluster) bool {
	return !slices.ContainsFunc(line, func(c cluster) bool { return c.width > 0 && strings.TrimSpace(c.shown) != "" })
}

// textOf returns the text that clusters stand for.
func textOf(all []cluster) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString(c.text)
	}
	return b.String()
}

// visible returns a row as it is shown.
func visible(row []cluster) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteString(c.shown)
	}
	return b.String()
}

// layOutLines returns whole printed lines as rows. Each row resets the colours that it leaves on, and the next row
// turns them on again, because the prompt may be drawn between any two rows.
func layOutLines(lines string, width int, colour bool) []string {
	var out []string
	active := ""
	for _, line := range splitLines(splitColoured(strings.TrimSuffix(lines, "\n"), colour)) {
		for end, next := 0, 0; ; line = line[next:] {
			end, next = breakAt(line, width)
			row := line[:end]
			text := active + visible(row)
			for _, c := range row {
				switch {
				case c.text == "\x1b[m" || c.text == "\x1b[0m":
					active = ""
				case strings.HasPrefix(c.text, "\x1b"):
					active += c.text
				}
			}
			if active != "" {
				text += "\x1b[m"
			}
			if out = append(out, text); next >= len(line) {
				break
			}
		}
	}
	return out
}

// splitLines cuts text at its newlines.
func splitLines(all []cluster) [][]cluster {
	var lines [][]cluster
	start := 0
	for i, c := range all {
		if c.isNewline() {
			lines = append(lines, all[start:i])
			start = i + 1
		}
	}
	return append(lines, all[start:])
}

// stream wraps a model's text while it arrives in pieces. A row that is complete is given away at once, so only the row
// that grows is kept. Of Markdown, a block is kept until it has ended, because only then it is known how it is drawn.
type stream struct {
	// partial is the beginning of a character whose other bytes have not come yet.
	partial string
	// growing is what is shown of the current row.
	growing []cluster
	// markdown draws the text instead; nil: the text is plain.
	markdown *markdown.Writer
}

// add appends text and returns the rows that are complete now. However the text is cut into pieces, the rows are the
// same.
func (s *stream) add(more string, width int) []string {
	more = s.partial + more
	whole := text.WholeRunes(more)
	s.partial = more[len(whole):]
	if s.markdown != nil {
		return s.markdown.Add(clean(whole), width)
	}
	// The row that grows is split again together with the new text: a combining mark may have come after its letter.
	lines := splitLines(clusters(textOf(s.growing) + clean(whole)))
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

// isGrowing reports whether a row or a block has begun and not ended.
func (s *stream) isGrowing() bool {
	return len(s.growing) > 0 || s.markdown != nil && s.markdown.IsGrowing()
}

// growingRows returns what has not ended yet, as it is shown: at most so many rows of it, the last ones.
func (s *stream) growingRows(width, most int) []string {
	switch {
	case !s.isGrowing() || most <= 0:
		return nil
	case s.markdown == nil:
		return []string{visible(s.growing)}
	}
	rows := s.markdown.Growing(width)
	return rows[max(0, len(rows)-most):]
}

// flush ends the text and returns the last rows, if there are any.
func (s *stream) flush(width int) []string {
	row := s.growing
	s.growing, s.partial = nil, ""
	switch {
	case s.markdown != nil:
		return s.markdown.End(width)
	case len(row) == 0:
		return nil
	}
	return []string{withoutTrailingBlanks(row)}
}
