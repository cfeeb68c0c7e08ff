package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const tabWidth = 4

// cluster is what the cursor moves over in one step: a grapheme cluster, a newline, a tab, a folded paste, or
// (in text that is printed) a colour sequence, of no width.
type cluster struct {
	text  string // what it stands for
	shown string
	width int // columns
}

var newline = cluster{text: "\n"}

// clusters splits clean text.
func clusters(s string) []cluster {
	out := make([]cluster, 0, len(s))
	for len(s) > 0 {
		c := cluster{width: 1}
		switch {
		case s[0] == '\n':
			c = newline
		case s[0] == '\t':
			c = cluster{text: "\t", shown: strings.Repeat(" ", tabWidth), width: tabWidth}
		case s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf):
			c.text, c.shown = s[:1], s[:1]
		default:
			c.text, c.width = ansi.FirstGraphemeCluster(s, ansi.WcWidth)
			c.shown = c.text
		}
		out = append(out, c)
		s = s[len(c.text):]
	}
	return out
}

// steers says whether a rune can move the cursor, change a mode, or turn around what is read.
func steers(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// clean takes out what could steer the terminal, colour sequences among it.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// pasted is clean with the line ends that terminals send in a paste.
func pasted(s string) string {
	return clean(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}

// coloured splits text that may carry SGR sequences; all other sequences and control characters are dropped.
func coloured(s string, colour bool) []cluster {
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
		if colour && isColour(seq) {
			out = append(out, cluster{text: seq, shown: seq})
		}
		s = s[max(n, 1):]
	}
	return out
}

func isColour(seq string) bool {
	return strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") && strings.Trim(seq[2:len(seq)-1], "0123456789;:") == ""
}

// wrap breaks a line (no newlines in it) into rows of at most width columns, at words where there are any.
func wrap(line []cluster, width int) [][]cluster {
	var rows [][]cluster
	for {
		end, next := breakAt(line, width)
		rows = append(rows, line[:end])
		if next >= len(line) {
			return rows
		}
		line = line[next:]
	}
}

// breakAt says where the first row of a line ends, and where the next one begins: len(line) if it all fits.
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
		if end == 0 || blank(line[:end]) { // a word longer than the row
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

func blank(line []cluster) bool {
	for _, c := range line {
		if strings.TrimSpace(c.shown) != "" && c.width > 0 {
			return false
		}
	}
	return true
}

func shown(row []cluster) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteString(c.shown)
	}
	return b.String()
}

func columns(row []cluster) int {
	n := 0
	for _, c := range row {
		n += c.width
	}
	return n
}

// paint gives whole printed lines as rows. Each row closes the colours that it opened, and the next one takes them
// up: between two rows the prompt may be drawn.
func paint(lines string, width int, colour bool) []string {
	var out []string
	active := ""
	for _, line := range split(coloured(strings.TrimSuffix(lines, "\n"), colour)) {
		for _, row := range wrap(line, width) {
			text := active + shown(row)
			for _, c := range row {
				if !strings.HasPrefix(c.text, "\x1b") {
					continue
				}
				if c.text == "\x1b[m" || c.text == "\x1b[0m" {
					active = ""
				} else {
					active += c.text
				}
			}
			if active != "" {
				text += "\x1b[m"
			}
			out = append(out, text)
		}
	}
	return out
}

// split cuts at newlines.
func split(all []cluster) [][]cluster {
	var lines [][]cluster
	start := 0
	for i, c := range all {
		if c.text == "\n" {
			lines = append(lines, all[start:i])
			start = i + 1
		}
	}
	return append(lines, all[start:])
}
