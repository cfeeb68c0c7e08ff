package view

import (
	"hash/fnv"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Tone is what a colour means. It is never the only sign: the text says it too.
type Tone int

const (
	Plain Tone = iota
	Good       // landed, passed
	Bad        // returned, broken, needs somebody
	Faint      // said for completeness
)

// Paint colours text, or leaves it as it is.
type Paint bool

// code is the tone's colour, as terminals number them; "": none.
func (t Tone) code() string {
	switch t {
	case Good:
		return "32"
	case Bad:
		return "31"
	case Faint:
		return "2"
	}
	return ""
}

// whose is a name's colour: the same name has always the same one, and none that means something.
func whose(name string) string {
	switch name {
	case "", "landing", "board", "muster", "state":
		return ""
	case "lead":
		return "1"
	}
	palette := [...]string{"36", "33", "35", "34", "96", "93", "95", "94"}
	h := fnv.New32a()
	io.WriteString(h, name)
	return palette[h.Sum32()%uint32(len(palette))]
}

// In colours s as the tone says.
func (p Paint) In(t Tone, s string) string { return p.code(t.code(), s) }

// Who colours s as the name's.
func (p Paint) Who(name, s string) string { return p.code(whose(name), s) }

func (p Paint) code(code, s string) string {
	if !p || code == "" || s == "" {
		return s
	}
	return string(p.pad(nil, code, s, 0))
}

// pad appends s to some text, in a colour, filled with spaces to the width n.
func (p Paint) pad(to []byte, code, s string, n int) []byte {
	fill := max(n-columns(s), 0)
	painted := bool(p) && code != "" && len(s)+fill > 0
	if painted {
		to = append(append(append(to, "\x1b["...), code...), 'm')
	}
	to = append(to, s...)
	for range fill {
		to = append(to, ' ')
	}
	if painted {
		to = append(to, "\x1b[0m"...)
	}
	return to
}

// OneLine is text as one line that cannot steer a terminal: models and foreign programs wrote it.
func OneLine(s string) string {
	if isOneLine(s) {
		return s // nearly all are, and a long log has many
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff: // and what reorders text
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// isOneLine reports whether s is words of plain ASCII with one blank between each two.
func isOneLine(s string) bool {
	blank := true // before s, and after it
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || blank && s[i] == ' ' {
			return false
		}
		blank = s[i] == ' '
	}
	return s == "" || !blank
}

// ManyLines is text of several lines that cannot steer a terminal.
func ManyLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// TerminalWidth is how many columns w has; ok is false where w is no terminal.
func TerminalWidth(w io.Writer) (width int, ok bool) {
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
