// Package safetext knows which characters of a text that a model or another program wrote must not reach a terminal.
// The packages that print share it, so that none of them lets through what another holds back.
package safetext

import (
	"strings"
	"unicode"
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

// IsUnsafe reports whether a rune could move the cursor, change a mode of the terminal, break a line in an unexpected
// place or reverse the order of text. Newlines and tabs are control characters too; a caller that prints them allows
// them itself.
func IsUnsafe(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
