// Package text has the functions on strings that all other packages share.
//
// Clean and OneLine make a text of a model or another program fit to be shown: they remove control characters, and
// what they return is UTF-8. CutBytes, FirstBytes, LastBytes and CutColumns shorten a text and cut no rune in two.
// ShellQuote quotes a word for a shell. EscapeTags keeps a text from being taken for a tag of the runtime.
package text

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text of any number of lines without unsafe runes. Newlines and tabs stay. U+FFFD replaces what is
// not UTF-8.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && isUnsafe(r) {
			return -1
		}
		return r
	}, s)
}

// OneLine is Clean for a text that is shown on one line: its words with one blank between each two.
func OneLine(s string) string {
	if isOneLine(s) {
		return s // nearly all are, and a long log has many
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case isUnsafe(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// isOneLine reports whether s is printable words of ASCII with one blank between each two.
func isOneLine(s string) bool {
	blank := true // before s, and after it
	for i := range len(s) {
		if !isPlain(s[i]) || blank && s[i] == ' ' {
			return false
		}
		blank = s[i] == ' '
	}
	return s == "" || !blank
}

// isUnsafe reports whether a rune could move the cursor, change a mode of the terminal, break a line in an unexpected
// place or reverse the order of text: all control characters, newlines and tabs among them, and the separators and
// embeddings of Unicode. So an escape sequence loses what begins it, and its rest is seen. A byte order mark is unsafe,
// because it hides in names. Other characters without a width are not: emoji and many scripts are joined with them.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// BadLine returns the number of the first line that is not UTF-8, or 0 if there is none.
func BadLine(data []byte) int {
	number := 0
	if utf8.Valid(data) { // as nearly all are; to look at each line takes longer
		return number
	}
	for line := range bytes.Lines(data) {
		if number++; !utf8.Valid(line) {
			break
		}
	}
	return number
}

// ShellQuote returns s as one word of a POSIX shell, so that a command in a message can be pasted. A word without
// special characters stays as it is.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n\r'\"\\$`!&;()<>|*?[]{}#~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
