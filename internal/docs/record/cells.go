package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// look is how a piece of text is drawn. The zero value is plain text.
type look struct {
	bold, faint, underlined, reversed bool
	// text and ground are classes of the sixteen colours ("c1", "g4"), or colours of their own ("#ff8700"); "" is the
	// terminal's own.
	text, ground string
}

// piece is text in one look, which begins at a column.
type piece struct {
	column int
	text   string
	look   look
}

// pieces takes a line of the screen apart. Runs of blanks that nothing is drawn for separate pieces, so that columns
// stay in place whatever the width of the reader's letters.
func pieces(line string) (all []piece) {
	var now look
	column := 0
	for line != "" {
		at := escape.FindStringSubmatchIndex(line)
		if at == nil {
			at = []int{len(line), len(line), -1, -1}
		}
		all = append(all, split(line[:at[0]], column, now)...)
		column += utf8.RuneCountInString(line[:at[0]])
		if at[2] >= 0 {
			now = now.apply(line[at[2]:at[3]])
		}
		line = line[at[1]:]
	}
	return all
}

// split divides text of one look where two or more blanks stand, unless they have a ground of their own.
func split(text string, column int, l look) (all []piece) {
	if l.ground != "" || l.reversed {
		if text != "" {
			all = append(all, piece{column, text, l})
		}
		return all
	}
	for text != "" {
		blanks := len(text) - len(strings.TrimLeft(text, " "))
		text, column = text[blanks:], column+blanks
		word := text
		if i := strings.Index(text, "  "); i >= 0 {
			word = text[:i]
		}
		text = text[len(word):]
		if word != "" {
			shown := strings.TrimRight(word, " ")
			all = append(all, piece{column, shown, l})
			column += utf8.RuneCountInString(word)
		}
	}
	return all
}

// apply returns the look after a sequence such as "1;38;5;208".
func (l look) apply(sequence string) look {
	codes := strings.FieldsFunc(sequence, func(r rune) bool { return r == ';' || r == ':' })
	if len(codes) == 0 {
		return look{}
	}
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i])
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.faint = true
		case n == 4:
			l.underlined = true
		case n == 7:
			l.reversed = true
		case n == 22:
			l.bold, l.faint = false, false
		case n == 24:
			l.underlined = false
		case n == 27:
			l.reversed = false
		case n == 38, n == 48:
			colour, used := longColour(codes[i+1:])
			i += used
			if n == 38 {
				l.text = colour.as("c")
			} else {
				l.ground = colour.as("g")
			}
		case n == 39:
			l.text = ""
		case n == 49:
			l.ground = ""
		case n >= 30 && n <= 37:
			l.text = colour{number: n - 30}.as("c")
		case n >= 90 && n <= 97:
			l.text = colour{number: n - 82}.as("c")
		case n >= 40 && n <= 47:
			l.ground = colour{number: n - 40}.as("g")
		case n >= 100 && n <= 107:
			l.ground = colour{number: n - 92}.as("g")
		}
	}
	return l
}

// colour is one of the sixteen of the terminal, or one of its own.
type colour struct {
	number int
	own    string // such as #ff8700
}

// as returns the colour itself, or the class of one of the sixteen with a prefix.
func (c colour) as(prefix string) string {
	if c.own != "" {
		return c.own
	}
	return prefix + strconv.Itoa(c.number)
}

// longColour reads what follows 38 or 48: 5;N of 256 colours, or 2;R;G;B. It says how many codes it has used.
func longColour(codes []string) (colour, int) {
	at := func(i int) int {
		if i >= len(codes) {
			return 0
		}
		n, _ := strconv.Atoi(codes[i])
		return n
	}
	if at(0) == 2 {
		return colour{own: fmt.Sprintf("#%02x%02x%02x", at(1), at(2), at(3))}, 4
	}
	n := at(1)
	switch {
	case n < 16:
		return colour{number: n}, 2
	case n >= 232:
		grey := 8 + 10*(n-232)
		return colour{own: fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)}, 2
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n -= 16
	return colour{own: fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))}, 2
}
