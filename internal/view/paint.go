package view

import (
	"hash/fnv"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"muster/internal/safetext"
)

// Tone is what a colour means.
type Tone int

// The tones. A colour is never the only sign of anything: the words say the same.
const (
	Plain Tone = iota
	Good       // landed, passed
	Bad        // returned, broken, needs somebody
	Faint      // said for completeness
)

// Paint says whether text is coloured. Without colour no escape sequence is written at all.
type Paint bool

// Screen is how something is drawn: whether in colour, and how wide. Width 0 is no terminal. What is drawn is one
// string that is written at once, so that a reader of a pipe never sees a part of it.
type Screen struct {
	Paint
	Width int
}

// toneCodes are the SGR numbers of the tones' colours, green, red and faint.
var toneCodes = [...]string{Plain: "", Good: "32", Bad: "31", Faint: "2"}

// nameColour returns the colour of a name. A name always has the same one, in every command and process, so it is made
// from the name alone. It is never the colour of a tone, because a member's name is neither good nor bad news.
func nameColour(name string) string {
	switch name {
	case "", "landing", "board", "muster", "state":
		return ""
	case "lead":
		return "1"
	}
	palette := [...]string{"36", "33", "35", "34", "96", "93", "95", "94"}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return palette[h.Sum32()%uint32(len(palette))]
}

// In colours s in a tone.
func (p Paint) In(t Tone, s string) string { return p.code(toneCodes[t], s) }

// Who colours s in the colour of a name.
func (p Paint) Who(name, s string) string { return p.code(nameColour(name), s) }

// code colours s by an SGR number. It returns s unchanged where there is nothing to colour.
func (p Paint) code(code, s string) string {
	if !p || code == "" || s == "" {
		return s
	}
	return string(p.pad(nil, code, s, 0))
}

// pad appends s in a colour, filled with spaces to n columns. A colour costs no column.
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

// OneLine returns text as one line that cannot steer a terminal: words with one blank between each two. To apply it to
// its own result changes nothing.
func OneLine(s string) string {
	if isOneLine(s) {
		return s // nearly all are, and a long log has many
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case safetext.IsUnsafe(r), r == 0xfeff: // a byte order mark has no width, and hides in names
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// isOneLine reports whether s is printable ASCII words with one blank between each two. Nearly all texts are, and a
// long log has many, so they skip the slow path.
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

// ManyLines returns text of several lines without what could steer a terminal. Its newlines and tabs stay.
func ManyLines(s string) string { return safetext.Clean(s) }

// TerminalWidth returns the number of columns of w; ok is false if w is no terminal. A terminal that does not know its
// size, as over some serial lines, counts as 80 columns wide.
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
