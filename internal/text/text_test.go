package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " a  b\n": "a b", "a\rb": "a b", "a\r\n\tb": "a b", "a\x1b[31mb": "a[31mb", "a\u009b31mb": "a31mb",
		"a\u2028b": "a b", "\ufeffname": "name", "a\u202eb": "ab", "x\xffy": "x\ufffdy", "a\u00a0b": "a b",
		family: family, "می\u200cخواهم": "می\u200cخواهم",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Clean("a\r\n\tb\x1b\xff\ufeff"); got != "a\n\tb\ufffd" {
		t.Errorf("clean: %q", got)
	}
}

// TestNoControlCharacterPasses: whatever a text has, one line of it has nothing that steers a terminal, and is UTF-8.
func TestNoControlCharacterPasses(t *testing.T) {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"a", " ", "\t", "\n", "\r\n", "\x1b]0;x\x07", "\x00", "\u0085", "\u009b", "\u2029",
		"\u202a", "\u2066", "\ufeff", "\xc3", "\xff", family}), rapid.String())
	bad := func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Bidi_Control, r) && r > 0x200f
	}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		for _, line := range []string{OneLine(s), strings.NewReplacer("\n", "", "\t", "").Replace(Clean(s))} {
			if strings.ContainsFunc(line, bad) || !utf8.ValidString(line) {
				t.Fatalf("%q became %q", s, line)
			}
		}
		if line := OneLine(s); OneLine(line) != line || strings.Join(strings.Fields(line), " ") != line {
			t.Fatalf("OneLine(%q) = %q", s, line)
		}
	})
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"},
	} {
		if got := List(names, 2); got != want {
			t.Errorf("List(%q, 2) = %q, want %q", names, got, want)
		}
	}
}

func TestBadLine(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a\né\n": 0, "\xff": 1, "a\n\xff\n\xff": 2, "a\n\n\xc3": 3} {
		if got := BadLine([]byte(text)); got != want {
			t.Errorf("BadLine(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/home/ann/repo": "/home/ann/repo", "/home/ann/my work": "'/home/ann/my work'", "it's": `'it'\''s'`,
		"$HOME": "'$HOME'", "a\nb": "'a\nb'", "": "''",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
