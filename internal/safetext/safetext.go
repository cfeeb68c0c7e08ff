// Package safetext makes texts that a model or another program wrote fit to be shown. It knows which characters of them
// must not reach a terminal, finds what is no text, and shortens what may be long. The packages that print share it, so
// that none of them lets through what another holds back.
package safetext

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

// Cut returns the beginning of a text that has more than so many bytes, with dots behind. It cuts no character in two.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}

// OneLine returns a text in one line, without characters that steer a terminal.
func OneLine(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// BadLine returns the number of the first line that is not UTF-8, or 0 if there is none.
func BadLine(text []byte) int {
	number := 0
	if utf8.Valid(text) { // as nearly all are; to look at each line takes longer
		return number
	}
	for line := range bytes.Lines(text) {
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
