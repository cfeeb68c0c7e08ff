package view

import (
	"hash/fnv"
	"io"
	"os"
	"strconv"
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

// In colours s as the tone says.
func (p Paint) In(t Tone, s string) string {
	code := ""
	switch t {
	case Good:
		code = "32"
	case Bad:
		code = "31"
	case Faint:
		code = "2"
	}
	return p.code(code, s)
}

// Who colours a name: the same name always in the same colour, and none that means something.
func (p Paint) Who(name, s string) string {
	switch name {
	case "", "landing", "board", "muster", "state":
		return s
	case "lead":
		return p.code("1", s)
	}
	palette := []int{36, 33, 35, 34, 96, 93, 95, 94}
	h := fnv.New32a()
	io.WriteString(h, name)
	return p.code(strconv.Itoa(palette[h.Sum32()%uint32(len(palette))]), s)
}

func (p Paint) code(code, s string) string {
	if !p || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
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
