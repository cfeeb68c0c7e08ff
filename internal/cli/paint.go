package cli

import (
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// tone is what a colour means. It is never the only sign: the text says it too.
type tone int

const (
	plain tone = iota
	good       // landed, passed
	bad        // returned, broken, needs somebody
	faint      // said for completeness
)

// paint colours text, or leaves it as it is.
type paint bool

func (p paint) in(t tone, s string) string {
	code := map[tone]string{good: "32", bad: "31", faint: "2"}[t]
	return p.code(code, s)
}

// who colours a name: the same name always in the same colour, and none that means something.
func (p paint) who(name, s string) string {
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

func (p paint) code(code, s string) string {
	if !p || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// oneLine is text as one line that cannot steer a terminal: models and foreign programs wrote it.
func oneLine(s string) string {
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

// manyLines is text of several lines that cannot steer a terminal.
func manyLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// terminal returns the width of w when it is a terminal.
func terminal(w io.Writer) (width int, ok bool) {
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
