package textmatch_test

import (
	"testing"

	"muster/internal/textmatch"
)

// What a quote and its new text say is done as it is meant, or not at all: "" is for the latter.
func TestHostileQuotes(t *testing.T) {
	for _, c := range []struct{ what, text, old, new, want string }{
		{"a string with two blanks stays", "f(\"a  b\", 1)\n", "f(\"a b\", 1)", "f(\"a b\", 2)", "f(\"a  b\", 2)\n"},
		{"curly in a string stays", "f(\"it’s\",  1)\n", "f(\"it's\", 1)", "f(\"it's\", 2)", "f(\"it’s\",  2)\n"},
		{"a dedent out of the file", "  a\n  b\n", "    a\n    b", "    a\n  b\nc", ""},
		{"numbers in the new text only", "a b\n", "a  b", "1\ta b", "1\ta b\n"},
		{"an entity that is meant", "<p>a  b</p>\n", "<p>a b</p>", "<p>a &amp; b</p>", "<p>a  &amp; b</p>\n"},
		{"other entities stay", "<p>a</p>\n", "&lt;p&gt;a&lt;/p&gt;", "&lt;p&gt;a&nbsp;b&lt;/p&gt;", "<p>a&nbsp;b</p>\n"},
		{"a regular expression", "x = /\\d+/\n", `x = /\\d+/`, `x = /\\w+/`, "x = /\\w+/\n"},
		{"a backslash that is no escape", "x = \"\\q\"\n", `x = \"\q\"`, `x = 1`, ""},
		{"tabs at depth for spaces", "\t\treturn x\n\tb\n", "return  x", "if y:\n    return 2\nreturn x", "\t\tif y:\n\t\t\treturn 2\n\t\treturn x\n\tb\n"},
		{"a Makefile rule", "all:\n\tx\n", "all:\n    x", "all:\n    x\n    y\n\nb:\n    z", "all:\n\tx\n\ty\n\nb:\n\tz\n"},
		{"the same line moves", "a:\n    x\n    y\n", "a:\n  x\n  y", "a:\n  y\n  x", "a:\n    y\n    x\n"},
		{"a line joins a block", "if a:\n    x\ny\n", "if a:\n  x\ny", "if a:\n  x\n  y", "if a:\n    x\n    y\n"},
		{"a line leaves a block", "if a:\n    x\n    y\n", "if a:\n  x\n  y", "if a:\n  x\ny", "if a:\n    x\ny\n"},
		{"from within a line to a block", "a = b( 1 )\n", "b(  1 )", "c(\n    1\n)", ""},
		{"before a property", "x.a  = 1\n", "a = 1", "b = 1", ""},
		{"a number goes on", "v = 1.5\n", "v  = 1", "v = 2", ""},
		{"negative", "v =  -1\n", "1 ", "2", ""},
		{"CRLF at the end only", "a\nb\r\n", "b\n", "c\n", "a\nc\r\n"},
		{"a form feed", "a\fb\n", "a b", "c", ""},
		{"a bare carriage return", "a\rb\n", "a b", "c", "c\n"},
		{"bytes that are not UTF-8", "x\xff = 1\ny  = 2\n", "y = 2", "y = 3", "x\xff = 1\ny  = 3\n"},
		{"a mark that joins", "e\u0301 = 1\n", "e  = 1", "x", ""},
	} {
		after, places, err := textmatch.Replace(c.text, c.old, c.new, false)
		isDone := err == nil && len(places) == 1
		if isDone != (c.want != "") || isDone && after != c.want || !isDone && after != c.text {
			t.Errorf("%s: %v, %d places, %q, want %q", c.what, err, len(places), after, c.want)
		}
	}
}
