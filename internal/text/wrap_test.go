package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCleaning(t *testing.T) {
	for _, c := range []struct{ name, in, colour, plain string }{
		{"colour stays", "a\x1b[1;31mb\x1b[mc", "a\x1b[1;31mb\x1b[mc\x1b[m", "abc"},
		{"cursor and erase go", "a\x1b[2Jb\x1b[10;10Hc\x1b[?1049hd", "abcd", "abcd"},
		{"title and link go", "a\x1b]0;title\ab\x1b]8;;http://x\x1b\\c", "abc", "abc"},
		{"device strings go", "a\x1bP$qm\x1b\\b\x1bcc", "abc", "abc"},
		{"a sequence without its end", "ab\x1b[3", "ab", "ab"},
		{"8-bit controls go", "a\u009b31mb\u0085c", "a31mbc", "a31mbc"},
		{"bidi overrides go", "a\u202eb\u2066c\u2069", "abc", "abc"},
		{"marks of writing direction stay", "a\u200fb", "a\u200fb", "a\u200fb"},
		{"bell, backspace, return go", "a\a\b\rb", "ab", "ab"},
		{"broken UTF-8", "a\xffb", "a\uFFFDb", "a\uFFFDb"},
		{"tabs are blanks", "a\tb", "a    b", "a    b"},
	} {
		// a row that leaves a colour on ends with a reset
		if got := strings.Join(WrapColoured(c.in, 79, true), "|"); got != strings.TrimSuffix(c.colour, "\x1b[m") &&
			got != c.colour {
			t.Errorf("%s: in colour %q, want %q", c.name, got, c.colour)
		}
		if got := strings.Join(WrapColoured(c.in, 79, false), "|"); got != c.plain {
			t.Errorf("%s: plain %q, want %q", c.name, got, c.plain)
		}
	}
}

func TestWrapping(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"one two   three", []string{"one two", "three"}},
		{"12345678 x", []string{"12345678", "x"}},
		{"1234567890", []string{"12345678", "90"}},
		{"  1234567890", []string{"  123456", "7890"}},
		{"日本語日本語", []string{"日本語日", "本語"}},
		{"a\nb\n\nc\n", []string{"a", "b", "", "c"}},
		{"\x1b[31mred and blue\x1b[m", []string{"\x1b[31mred and\x1b[m", "\x1b[31mblue\x1b[m"}},
	} {
		if diff := cmp.Diff(c.want, WrapColoured(c.in, 8, true)); diff != "" {
			t.Errorf("%q: %s", c.in, diff)
		}
	}
}

// Whatever is wrapped: no row is too wide, and no character is lost.
func TestNoRowIsTooWide(t *testing.T) {
	anyText := rapid.StringOf(rapid.SampledFrom([]rune("abc xyz  -.\t\n日本\u0301\U0001F44D\u200d\u202e\x1b[1m")))
	rapid.Check(t, func(t *rapid.T) {
		text := anyText.Draw(t, "text")
		width := rapid.IntRange(4, 20).Draw(t, "width")
		rows := WrapColoured(text, width, false)
		for _, row := range rows {
			if Columns(row) > width {
				t.Fatalf("%q is wider than %d", row, width)
			}
		}
		blanks := strings.NewReplacer(" ", "", "\n", "", "\t", "")
		if a, b := blanks.Replace(Coloured(text, false)), blanks.Replace(strings.Join(rows, "")); a != b {
			t.Fatalf("lost characters: %q of %q", b, a)
		}
	})
}

func TestPacked(t *testing.T) {
	got := Packed([]string{"y yes", "n no", "Y allow all of this", "v view"}, " · ", 12)
	if want := []string{"y yes · n no", "Y allow all", "of this", "v view"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
