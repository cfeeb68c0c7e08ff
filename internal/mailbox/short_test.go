package mailbox

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"as it is":                      "as it is",
		"bad \xff byte":                 "bad ? byte",
		strings.Repeat("x", 4000):       strings.Repeat("x", 4000),
		strings.Repeat("é", 2001):       strings.Repeat("é", 2000) + " ...",
		"a" + strings.Repeat("é", 2000): "a" + strings.Repeat("é", 1999) + " ...", // not half a character
	} {
		if got := Short(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q... became %d bytes, want %d", text, len(got), len(want))
		}
	}
}
