// Package text has the functions on strings that all other packages share, so that none of them lets through what
// another holds back: foreign text as it may be shown, in one line, cut, as a word of a shell, and as a model reads it.
package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text of any number of lines without the runes that are unsafe. Its newlines and tabs stay.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && IsUnsafe(r) {
			return -1
		}
		return r
	}, s)
}

// CutBytes returns the beginning of a text that has more than so many bytes, with dots behind. It cuts no character in
// two.
func CutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " ..."
}

// OneLine returns a text in one line, without characters that steer a terminal.
func OneLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

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

// List names the first of some files, tasks and the like in a sentence, and says how many more there are.
func List(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// IsUnsafe reports whether a rune could move the cursor, change a mode of the terminal, break a line in an unexpected
// place or reverse the order of text. Newlines and tabs are control characters too; a caller that prints them allows
// them itself.
func IsUnsafe(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
