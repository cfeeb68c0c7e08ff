package textmatch

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is a text in the form in which texts are compared: look-alikes as ASCII, each run of blanks as one space, and
// lines without blanks at their ends. Empty lines are left out.
type form struct {
	text string
	// at has for each byte of text where its character begins in the original. For a space or a newline that is where
	// the character before it ends.
	at []int
}

// newForm returns the form of a text.
func newForm(s string) form {
	var b strings.Builder
	var at []int
	gap, end := "", 0 // what comes before this character, and where the last one ends
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		start := i
		i += size
		switch text := plain(r); text {
		case "":
		case "\n":
			gap = text
		case " ":
			if gap == "" {
				gap = text
			}
		default:
			if gap != "" && b.Len() > 0 {
				b.WriteString(gap)
				at = append(at, end)
			}
			b.WriteString(text)
			for range len(text) {
				at = append(at, start)
			}
			gap, end = "", i
		}
	}
	return form{b.String(), at}
}

// lookAlikes are characters that models write for others.
var lookAlikes = map[rune]string{
	'\u2018': "'", '\u2019': "'", '\u201a': "'", '\u201b': "'", '\u2032': "'", '\u00b4': "'",
	'\u201c': `"`, '\u201d': `"`, '\u201e': `"`, '\u201f': `"`, '\u2033': `"`, '\u00ab': `"`, '\u00bb': `"`,
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2015': "-", '\u2212': "-",
	'\u2026': "...", '\u200b': "", '\u200c': "", '\u200d': "", '\u2060': "", '\ufeff': "", '\u00ad': "",
}

// plain returns what stands for a character in a form: a space for a blank of any width, "" for what has no width. A
// byte that is not UTF-8 is the character that a listing shows for it.
func plain(r rune) string {
	if r == '\t' || r == '\r' || unicode.Is(unicode.Zs, r) {
		return " "
	}
	if text, ok := lookAlikes[r]; ok {
		return text
	}
	return string(r)
}

// isCut reports whether byte i of the form parts a character of the text, a name, a number, or an operator.
func (f form) isCut(i int) bool {
	if i == 0 || i == len(f.text) {
		return false
	}
	a, b := f.text[i-1], f.text[i]
	isParted := f.at[i] == f.at[i-1]
	return isParted || isName(a) && isName(b) || isOperator(a) && isOperator(b) || a == '-' && b >= '0' && b <= '9'
}

// isName reports whether a byte may be a part of a name or a number.
func isName(b byte) bool {
	return b >= utf8.RuneSelf || b == '_' || b == '.' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// isOperator reports whether a byte may be a part of an operator.
func isOperator(b byte) bool { return strings.IndexByte("=<>!&|+-*/%^~:?", b) >= 0 }
