package code

import (
	"strings"
	"testing"

	"muster/llm"
)

// TestExcerpt checks what of an answer is shown: the ends of an output.
func TestExcerpt(t *testing.T) {
	numbered := func(n int) string { return strings.Repeat("line\n", n) }
	for _, c := range []struct{ tool, answer, want string }{
		{"bash", "ok\n", "ok"},
		{"bash", numbered(5), strings.TrimSuffix(numbered(5), "\n")},
		{"bash", "1\n2\n3\n4\n5\n6\n[exit 1]", "1\n2\n... 3 more lines\n6\n[exit 1]"},
		{"read_file", "1\tx", ""},
		{"bash", "[exit 0, no output]", ""},
	} {
		if got := Excerpt(llm.Call{Name: c.tool}, c.answer); got != c.want {
			t.Errorf("%s %q gives %q, want %q", c.tool, c.answer, got, c.want)
		}
	}
	if got := Excerpt(llm.Call{Name: "bash"}, strings.Repeat("ä", 1000)); len(got) > excerptLine {
		t.Errorf("a line of %d bytes", len(got))
	}
}
