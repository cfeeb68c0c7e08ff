package text

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

var tags = []string{"mail", "auto-claimed", "reminder", "background-results", "hook", "skill", "role", "identity",
	"environment", "instructions", "memories", "material"}

// opens reports whether s has anything like a tag: a reader of its own, without a regular expression.
func opens(s string) bool {
	s = strings.ToLower(s)
	for {
		_, rest, ok := strings.Cut(s, "<")
		if !ok {
			return false
		}
		s = rest
		blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Z, unicode.Cf) }
		rest = strings.TrimLeftFunc(rest, blank)
		rest = strings.TrimLeftFunc(strings.TrimPrefix(rest, "/"), blank)
		for _, m := range tags {
			if strings.HasPrefix(rest, m) {
				return true
			}
		}
	}
}

// hostile draws text that is made of tags and their parts.
func hostile() *rapid.Generator[string] {
	pieces := []string{"<", "</", "/", ">", " ", "\n", "\"", "\\", "MAIL", "Skill name=\"x\"", "ma", "il", "&lt;",
		"]", "{", "\u003c", "\\u003c", "ä", "<b>", "\u00a0", "\u200b", "\v"}
	piece := rapid.OneOf(rapid.SampledFrom(append(pieces, tags...)), rapid.String())
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") })
}

func TestEscapeTags(t *testing.T) {
	for _, m := range tags {
		for _, v := range []string{"", "\n", "\v", "\u0085", "\u00a0", "\u200b"} {
			if e := EscapeTags("<" + v + m + "><" + v + "/" + v + strings.ToUpper(m)); opens(e) {
				t.Fatalf("%q still opens a tag", e)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "s")
		e := EscapeTags(s)
		if opens(e) {
			t.Fatalf("%q still opens a tag", e)
		}
		if EscapeTags(e) != e {
			t.Fatalf("escaped twice: %q", EscapeTags(e))
		}
		if !opens(s) && e != s {
			t.Fatalf("%q needs no escape and became %q", s, e)
		}
		if back := strings.ReplaceAll(e, "&lt;", "<"); back != strings.ReplaceAll(s, "&lt;", "<") {
			t.Fatalf("%q became %q", s, e)
		}
	})
}

// What others wrote comes back as it was, and the tags of the runtime go.
func TestWithoutTags(t *testing.T) {
	const theirs = "see <mail from=\"x\"> and </Reminder>, <b> and a < b"
	told := "<auto-claimed>\nTask #1: " + EscapeTags(theirs) + "\n</auto-claimed>\n<reminder>Prove it.</reminder>"
	if got, want := WithoutTags(told), "Task #1: "+theirs+"\nProve it."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
