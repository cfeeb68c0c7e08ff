package textmatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/textmatch"
)

func Example() {
	after, _, err := textmatch.Replace("if x {\n\treturn 1\n}\n", "if x {\n    return 1\n}", "if x {\n    log()\n    return 2\n}", false)
	fmt.Printf("%v\n%s", err, after)
	// Output:
	// <nil>
	// if x {
	// 	log()
	// 	return 2
	// }
}

func TestReplace(t *testing.T) {
	const python = "class A:\n    def f(self):\n        x = 1\n        return x\n\n    def g(self):\n        return 2\n"
	for _, c := range []struct{ what, text, old, new, want string }{
		{"exact", "a\nb\n", "b", "c", "a\nc\n"},
		{"exact in a word", "foobar", "oba", "-", "fo-r"},
		{"line ends", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"},
		{"line ends the other way", "a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\nc\n"},
		{"blanks at line ends", "a  \nb\t\nc\n", "a\nb\n", "a\nB\n", "a  \nB\nc\n"},
		{"blanks at line ends of the quote", "a\nb\nc\n", "a  \nb ", "a  \nB ", "a\nB \nc\n"},
		{"spaces for tabs", "func f() {\n\tif x {\n\t\ta()\n\t}\n}\n", "    if x {\n        a()\n    }", "    if x {\n        if y {\n            b()\n        }\n    }", "func f() {\n\tif x {\n\t\tif y {\n\t\t\tb()\n\t\t}\n\t}\n}\n"},
		{"without the outer indentation", python, "def g(self):\n    return 2", "def g(self):\n    if 1:\n        return 3\n    return 2", strings.Replace(python, "        return 2\n", "        if 1:\n            return 3\n        return 2\n", 1)},
		{"with too much indentation", "a:\n  b: 1\n  c: 2\n", "    b: 1\n    c: 2", "    b: 1\n    d: 3\n    c: 2", "a:\n  b: 1\n  d: 3\n  c: 2\n"},
		{"other width", python, "  def f(self):\n    x = 1\n    return x", "  def f(self):\n    x = 1\n    if x:\n      x += 1\n    return x", strings.Replace(python, "        return x\n", "        if x:\n            x += 1\n        return x\n", 1)},
		{"alignment of what stays", "var (\n\ta   = 1\n\tbcd = 2\n)\n", "var (\n\ta = 1\n\tbcd = 2\n)", "var (\n\ta = 1\n\tbcd = 3\n)", "var (\n\ta   = 1\n\tbcd = 3\n)\n"},
		{"curly quotes", "say(\"it's\")\n", "say(“it’s”)", "say(“it is”)", "say(\"it is\")\n"},
		{"a dash in the file", "# a — b\nx = 1\n", "# a - b\nx = 1", "# a - b\nx = 2", "# a — b\nx = 2\n"},
		{"no-break spaces", "x = 1\n", "x\u00a0=\u00a01", "x = 2", "x = 2\n"},
		{"line numbers", "a\n\tb\nc\n", "     1\ta\n     2\t\tb\n", "     1\ta\n     2\t\tB\n", "a\n\tB\nc\n"},
		{"line numbers of the quote only", "a\n\tb\nc\n", "2→\tb", "\tB", "a\n\tB\nc\n"},
		{"line numbers with bars", "a\nb\n", "1 | a\n2 | b", "x", "x\n"},
		{"escaped newlines", "a\n\tb(\"x\\n\")\n", `a\n\tb(\"x\\n\")`, `a\n\tc(\"x\\n\")`, "a\n\tc(\"x\\n\")\n"},
		{"a fence", "a\nb\n", "```go\na\nb\n```", "```go\na\nc\n```", "a\nc\n"},
		{"entities", "if a < b && c {\n", "if a &lt; b &amp;&amp; c {", "if a &gt; b {", "if a > b {\n"},
		{"a last line without its end", "a\nb", "b\n", "c\n", "a\nc"},
		{"an empty line too many in front", "a\nb\n", "\na\nb", "\na\nc", "a\nc\n"},
		{"a line goes", "a\n  b  \nc\n", "b\n", "", "a\nc\n"},
		{"a line goes, of CRLF", "a\r\n  b\r\nc\r\n", "\tb\n", "", "a\r\nc\r\n"},
		{"a part of a line", "x = f( a,  b ) + 1\n", "f( a, b )", "g(a)", "x = g(a) + 1\n"},
		{"a line before the quote", "func f() {\n\ta()\n}\n", "    a()", "    // why\n    a()", "func f() {\n\t// why\n\ta()\n}\n"},
		{"a string with two blanks stays", "f(\"a  b\", 1)\n", "f(\"a b\", 1)", "f(\"a b\", 2)", "f(\"a  b\", 2)\n"},
		{"curly in a string stays", "f(\"it’s\",  1)\n", "f(\"it's\", 1)", "f(\"it's\", 2)", "f(\"it’s\",  2)\n"},
		{"numbers in the new text only", "a b\n", "a  b", "1\ta b", "1\ta b\n"},
		{"an entity that is meant", "<p>a  b</p>\n", "<p>a b</p>", "<p>a &amp; b</p>", "<p>a  &amp; b</p>\n"},
		{"other entities stay", "<p>a</p>\n", "&lt;p&gt;a&lt;/p&gt;", "&lt;p&gt;a&nbsp;b&lt;/p&gt;", "<p>a&nbsp;b</p>\n"},
		{"a regular expression", "x = /\\d+/\n", `x = /\\d+/`, `x = /\\w+/`, "x = /\\w+/\n"},
		{"tabs at depth for spaces", "\t\treturn x\n\tb\n", "return  x", "if y:\n    return 2\nreturn x", "\t\tif y:\n\t\t\treturn 2\n\t\treturn x\n\tb\n"},
		{"a Makefile rule", "all:\n\tx\n", "all:\n    x", "all:\n    x\n    y\n\nb:\n    z", "all:\n\tx\n\ty\n\nb:\n\tz\n"},
		{"the same line moves", "a:\n    x\n    y\n", "a:\n  x\n  y", "a:\n  y\n  x", "a:\n    y\n    x\n"},
		{"a line joins a block", "if a:\n    x\ny\n", "if a:\n  x\ny", "if a:\n  x\n  y", "if a:\n    x\n    y\n"},
		{"a line leaves a block", "if a:\n    x\n    y\n", "if a:\n  x\n  y", "if a:\n  x\ny", "if a:\n    x\ny\n"},
		{"CRLF at the end only", "a\nb\r\n", "b\n", "c\n", "a\nc\r\n"},
		{"a bare carriage return", "a\rb\n", "a b", "c", "c\n"},
		{"bytes that are not UTF-8", "x\xff = 1\ny  = 2\n", "y = 2", "y = 3", "x\xff = 1\ny  = 3\n"},
	} {
		got, places, err := textmatch.Replace(c.text, c.old, c.new, false)
		if err != nil || got != c.want || len(places) != 1 {
			t.Errorf("%s: %v, %d places\n%q, want\n%q", c.what, err, len(places), got, c.want)
		}
	}
}

func TestNothingIsReplaced(t *testing.T) {
	for _, c := range []struct {
		what, text, old, new string
		places               int // 0: it is missing
	}{
		{"another word", "value = 1\n", "values = 1", "x", 0},
		{"twice", "a\nb\na\n", "a", "c", 2},
		{"twice apart from blanks", "if x:\n  a\n\nif y:\n    a\n", "\ta", "b", 2},
		{"inside of a word", "elif  x:\n    pass\n", "if x:\n    pass", "if y:\n    pass", 0},
		{"a missing line", "a\nb\nc\n", "a\nc", "a", 0},
		{"an elision", "a\nb\nc\n", "a\n...\nc", "a\nx\nc", 0},
		{"case", "Hello\n", "hello", "x", 0},
		{"blanks", "a\n", "   \n", "x", 0},
		{"joined words", "ab = 1\n", "a b = 1", "x", 0},
		{"numbers that jump", "a\nb\n", "1\ta\n5\tb", "x", 0},
		{"a comment left out", "x = 1 # one\ny = 2\n", "x = 1\ny = 2", "x = 2\ny = 2", 0},
		{"a dedent out of the file", "  a\n  b\n", "    a\n    b", "    a\n  b\nc", 0},
		{"a backslash that is no escape", "x = \"\\q\"\n", `x = \"\q\"`, `x = 1`, 0},
		{"from within a line to a block", "a = b( 1 )\n", "b(  1 )", "c(\n    1\n)", 0},
		{"before a property", "x.a  = 1\n", "a = 1", "b = 1", 0},
		{"a number goes on", "v = 1.5\n", "v  = 1", "v = 2", 0},
		{"negative", "v =  -1\n", "1 ", "2", 0},
		{"a form feed", "a\fb\n", "a b", "c", 0},
		{"a mark that joins", "e\u0301 = 1\n", "e  = 1", "x", 0},
	} {
		got, places, err := textmatch.Replace(c.text, c.old, c.new, false)
		if got != c.text || (c.places == 0) != (err != nil) || len(places) != c.places {
			t.Errorf("%s: %v, %d places, %q", c.what, err, len(places), got)
		}
	}
	_, _, err := textmatch.Replace("if x:\n   a\n   b\n", "if x:\n\ta\n  b\n", "if x:\n\ta\n    c\n", false)
	if !errors.Is(err, textmatch.ErrIndent) {
		t.Errorf("an indentation that cannot be told: %v", err)
	}
}

func TestEverywhere(t *testing.T) {
	got, places, err := textmatch.Replace("a( 1 )\n\ta(  1 )\n", "a( 1  )", "b()", true)
	if got != "b()\n\tb()\n" || len(places) != 2 || err != nil {
		t.Errorf("%q, %v, %v", got, places, err)
	}
}

// Whatever is wrong with the whitespace of a quote, the result is that of the exact one, or nothing is changed.
func TestWrongWhitespace(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,3}( [a-z]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		depth := 0
		for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
			depth = max(0, depth+rapid.IntRange(-2, 1).Draw(t, "step"))
			lines = append(lines, strings.Repeat("\t", depth)+fmt.Sprint(word.Draw(t, "word"), i))
		}
		text := strings.Join(lines, "\n") + "\n"
		from := rapid.IntRange(0, len(lines)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(lines)).Draw(t, "to")
		quoted := lines[from:to]
		changed := append([]string{}, quoted...)
		at := rapid.IntRange(0, len(changed)-1).Draw(t, "changed")
		changed[at] += "x"
		if rapid.Bool().Draw(t, "deeper") {
			changed = append(changed, changed[at]+"y")
		}
		want := strings.Join(append(append(append([]string{}, lines[:from]...), changed...), lines[to:]...), "\n") + "\n"
		unit := rapid.SampledFrom([]string{"  ", "    ", "\t"}).Draw(t, "unit")
		distort := func(lines []string) string {
			var out []string
			for _, l := range lines {
				body := strings.TrimLeft(l, "\t")
				out = append(out, strings.Repeat(unit, len(l)-len(body))+body+rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "end"))
			}
			return strings.Join(out, "\n")
		}
		after, places, err := textmatch.Replace(text, distort(quoted), distort(changed), false)
		trimmed := func(s string) string {
			var out []string
			for l := range strings.SplitSeq(s, "\n") {
				out = append(out, strings.TrimRight(l, " \t"))
			}
			return strings.Join(out, "\n")
		}
		switch {
		case err != nil || len(places) > 1:
			if after != text {
				t.Fatalf("%v, and changed: %q", err, after)
			}
		case trimmed(after) != trimmed(want):
			t.Fatalf("%q\nquote %q\nnew %q\ngives %q\nwant  %q", text, distort(quoted), distort(changed), after, want)
		}
	})
}
