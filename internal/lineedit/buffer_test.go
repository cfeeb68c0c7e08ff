package lineedit

import (
	"strings"
	"testing"
)

// TestKeys presses keys at the mark | of a text.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ text, keys, want string }{
		{"one two|", "ctrl+w", "one |"},
		{"one-two|", "alt+backspace", "one-|"},
		{"one |two", "alt+d", "one |"},
		{"one| two", "ctrl+k ctrl+y ctrl+y", "one two two|"},
		{"one\ntwo|", "ctrl+u backspace", "one|"},
		{"one|\ntwo", "ctrl+k", "one|two"},
		{"|one", "ctrl+e ctrl+h", "on|"},
		{"ab|", "ctrl+t", "ba|"},
		{"a|bc", "ctrl+t", "ba|c"},
		{"|one two", "alt+f alt+f alt+b", "one |two"},
		{"x\U0001F1E9\U0001F1EA|", "backspace", "x|"},
		{"e\u0301|", "left delete", "|"},
		{"a|", "alt+enter home backspace", "a|"},
	} {
		before, after, _ := strings.Cut(c.text, "|")
		var b Buffer
		b.Set(after)
		b.Cursor = 0
		b.Insert(before)
		for _, k := range strings.Fields(c.keys) {
			if !b.Press(k) {
				t.Errorf("%s means nothing", k)
			}
		}
		if got := textOf(b.Text[:b.Cursor]) + "|" + textOf(b.Text[b.Cursor:]); got != c.want {
			t.Errorf("%q, %s: %q, want %q", c.text, c.keys, got, c.want)
		}
	}
	var b Buffer
	if b.Press("x") || b.Press("enter") {
		t.Error("a letter and Enter are the caller's")
	}
}

// TestSavedBuffers checks that a copy stays as it is, whatever is done to the other one.
func TestSavedBuffers(t *testing.T) {
	for keys := range editKeys {
		var b Buffer
		b.Set("one two\nthree")
		b.Press("ctrl+w")
		b.Press("up")
		b.Cursor = 5
		saved := b
		b.Press(strings.Fields(keys)[0])
		if saved.Value() != "one two\n" {
			t.Errorf("%s changes the copy to %q", keys, saved.Value())
		}
	}
}

// TestPaste checks that a large paste is one cluster, which is submitted whole.
func TestPaste(t *testing.T) {
	var b Buffer
	long := strings.Repeat("line\n", 20)
	b.Paste(long)
	if len(b.Text) != 1 || Shown(b.Text) != "[20 lines pasted]" || b.Value() != long {
		t.Errorf("%d clusters, %q", len(b.Text), Shown(b.Text))
	}
	if b.Press("backspace"); !b.IsEmpty() {
		t.Errorf("Backspace leaves %q", b.Value())
	}
}
