package text

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// CutBytes returns s or, if it is longer, its beginning with " ..." behind, in at most n bytes.
func CutBytes(s string, n int) string {
	const dots = " ..."
	if len(s) <= n {
		return s
	}
	return FirstBytes(s, n-len(dots)) + FirstBytes(dots, n)
}

// FirstBytes returns the beginning of s: the whole runes in its first n bytes.
func FirstBytes[T string | []byte](s T, n int) T {
	if n = max(n, 0); n >= len(s) {
		return s
	}
	return WholeRunes(s[:n])
}

// LastBytes returns the end of s: the whole runes in its last n bytes.
func LastBytes[T string | []byte](s T, n int) T {
	start := len(s) - min(max(n, 0), len(s))
	for skipped := 0; start > 0 && start < len(s) && skipped < utf8.UTFMax-1 && !utf8.RuneStart(s[start]); skipped++ {
		start++
	}
	return s[start:]
}

// WholeRunes returns s without the rune at its end that is not complete. Other bytes that are not UTF-8 stay.
func WholeRunes[T string | []byte](s T) T {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(string(s[i:])) {
				return s[:i]
			}
			break
		}
	}
	return s
}

// FirstCharacter returns the first character of s and how many columns it takes on a terminal. A character is what
// people see as one, and may have several runes: a grapheme cluster of Unicode.
//
// A terminal that knows nothing of grapheme clusters shows the runes of a character one after another. That is what
// counts here, because a terminal that was not asked may be such a one: an emoji that is joined of four takes eight
// columns. East Asian characters take two, combining ones and control characters none.
func FirstCharacter(s string) (character string, columns int) {
	// A letter of ASCII before another one stands for itself, which needs no look at the tables of Unicode.
	if s != "" && isPlain(s[0]) && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], 1
	}
	return ansi.FirstGraphemeCluster(s, ansi.WcWidth)
}

// isPlain reports whether a byte is a printable character of ASCII.
func isPlain(b byte) bool { return b >= ' ' && b <= '~' }

// Columns returns how many columns s takes on a terminal, as FirstCharacter counts them. Escape sequences take none.
func Columns(s string) int {
	for i := range len(s) {
		if !isPlain(s[i]) {
			return ansi.StringWidthWc(s)
		}
	}
	return len(s) // what nearly all texts are
}

// PadColumns fills s with blanks to n columns. A text that is wider stays as it is.
func PadColumns(s string, n int) string { return s + strings.Repeat(" ", max(n-Columns(s), 0)) }

// CutColumns returns s or, if it is wider, its beginning with "..." right behind, in at most n columns. There are three
// dots, also where it is cut behind a full stop. s has no escape sequences.
func CutColumns(s string, n int) string {
	const dots = "..."
	if Columns(s) <= n {
		return s
	}
	room, end := n-len(dots), 0
	for end < len(s) {
		character, columns := FirstCharacter(s[end:])
		if room -= columns; room < 0 {
			break
		}
		end += len(character)
	}
	return strings.TrimRight(s[:end], " .") + FirstBytes(dots, n)
}
