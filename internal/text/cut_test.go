package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const family = "\U0001F468\u200d\U0001F469\u200d\U0001F467" // one character of 18 bytes

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s       string
		n       int
		bytes   string
		columns string
	}{
		{"", 0, "", ""}, {"abc", 3, "abc", "abc"}, {"abcdefgh", 7, "abc ...", "abcd..."}, {"abcdefgh", 2, " .", ".."},
		{"abc", -1, "", ""}, {"Done. And more", 9, "Done. ...", "Done..."}, {"aéaaaaaa", 6, "a ...", "aéa..."},
		{"发布发布", 8, "发 ...", "发布发布"}, {"发布发布", 7, "发 ...", "发布..."}, {"发布发布", 6, " ...", "发..."},
		{"a" + family + "bcdef", 9, "a\U0001F468 ...", "a..."}, {"e\u0301e\u0301e\u0301e\u0301e\u0301", 4, " ...", "e\u0301..."},
		{"a\xff\xffaaaaaaa", 6, "a\xff ...", "a\xff\xff..."},
	} {
		if bytes, columns := CutBytes(c.s, c.n), CutColumns(c.s, c.n); bytes != c.bytes || columns != c.columns {
			t.Errorf("%q cut at %d: %q, %q; want %q, %q", c.s, c.n, bytes, columns, c.bytes, c.columns)
		}
	}
	if got := PadColumns("发", 4) + "|" + PadColumns("abc", 2); got != "发  |abc" {
		t.Errorf("padded: %q", got)
	}
}

// TestRunesStayWhole: whatever a text has, what is cut off it fits, and has no half of a rune.
func TestRunesStayWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(-1, len(s)+3).Draw(t, "n")
		first, last, cut := FirstBytes(s, n), LastBytes(s, n), CutBytes(s, n)
		if !strings.HasPrefix(s, first) || !utf8.ValidString(first) || len(first) > max(n, 0) || len(first) < min(n-3, len(s)) {
			t.Fatalf("the first %d bytes of %q are %q", n, s, first)
		}
		if !strings.HasSuffix(s, last) || !utf8.ValidString(last) || len(last) > max(n, 0) || len(last) < min(n-3, len(s)) {
			t.Fatalf("the last %d bytes of %q are %q", n, s, last)
		}
		if columns := CutColumns(s, n); len(cut) > max(n, 0) || !utf8.ValidString(cut) || Columns(columns) > max(n, 0) {
			t.Fatalf("%q cut to %d bytes is %q, and to columns %q", s, n, cut, columns)
		}
	})
}
