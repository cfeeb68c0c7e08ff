package textmatch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/testing/require"
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

// The cases of the edits that bench/edit measures. Those in refuse have no meaning, or several.
func TestCases(t *testing.T) {
	files := require.Value(filepath.Glob("../../bench/edit/testdata/*/*.json"))(t)
	done := 0
	for _, name := range files {
		var c struct {
			File, Want, Tool string
			Input            struct {
				Old   string `json:"old_text"`
				New   string `json:"new_text"`
				All   bool   `json:"replace_all"`
				Edits json.RawMessage
			}
		}
		if require.NoError(t, json.Unmarshal(require.Value(os.ReadFile(name))(t), &c)); c.Tool != "" || c.Input.Old == "" || c.Input.Edits != nil {
			continue
		}
		done++
		want := c.Want
		if filepath.Base(filepath.Dir(name)) == "refuse" {
			want = c.File
		}
		if got, _, err := textmatch.Replace(c.File, c.Input.Old, c.Input.New, c.Input.All); got != want {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, got, want)
		}
	}
	if done < 100 {
		t.Errorf("only %d cases", done)
	}
}

func TestReplace(t *testing.T) {
	for _, c := range []struct{ what, text, old, new, want string }{
		{"line ends the other way", "a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\nc\n"},
		{"CRLF at the end only", "a\nb\r\n", "b\n", "c\n", "a\nc\r\n"},
		{"a line end before the quote", "a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n"},
		{"blanks at line ends", "a  \nb\t\nc\n", "a\nb\n", "a\nB\n", "a  \nB\t\nc\n"},
		{"blanks at line ends of the quote", "a\nb\nc\n", "a  \nb ", "a  \nB ", "a\nB\nc\n"},
		{"empty lines that come", "\ta\n\tb( )\n", "a\nb( ) ", "\na\nb( )\n", "\n\ta\n\tb( )\n\n"},
		{"blanks at the end of a line that goes on", "a  b  \n", "a b", "a b c", "a  b c  \n"},
		{"one line, less deep", "\tif x {\n\t\ta( )\n\t}\n", "        a( ) ", "        a(1)\n    } else {\n        b()", "\tif x {\n\t\ta(1)\n\t} else {\n\t\tb()\n\t}\n"},
		{"a unit that the file has elsewhere only", "a:\n    b:\n        c:\nd:\n  e:  1\n", "  e: 1", "  e: 1\n    f: 2", "a:\n    b:\n        c:\nd:\n  e:  1\n    f: 2\n"},
		{"a file without indentation", "a( )\n", "a( ) ", "if b:\n  a( )", "if b:\n  a( )\n"},
		{"a line joins a block", "if a:\n    x\ny\n", "if a:\n  x\ny", "if a:\n  x\n  y", "if a:\n    x\n    y\n"},
		{"a line leaves a block", "if a:\n    x\n    y\n", "if a:\n  x\n  y", "if a:\n  x\ny", "if a:\n    x\ny\n"},
		{"alignment that changes", "\ta   b\n", "    a b", "    a  b", "\ta  b\n"},
		{"spaces behind tabs", "\tx( )\n", "\tx( ) ", "\tx( )\n\t  y", "\tx( )\n\t  y\n"},
		{"a quote at depth", "\tx( )\nb\n", "    x( ) ", "    if a:\n      x( )", "\tif a:\n\t\tx( )\nb\n"},
		{"curly quotes in a new line", "say(\"a\")\n", "say(“a”)", "say(“a”)\nsay(“b…”)", "say(\"a\")\nsay(\"b…\")\n"},
		{"bytes that are not UTF-8", "x\xff =  1\n", "x\uFFFD = 1", "x\uFFFD = 2", "x\xff =  2\n"},
		{"numbers in the new text only", "a b\n", "a  b", "1\ta b", "1\ta b\n"},
		{"a regular expression", "x = /\\d+/\n", `x = /\\d+/`, `x = /\\w+/`, "x = /\\w+/\n"},
		{"an entity that is meant", "<p>a  b</p>\n", "<p>a b</p>", "<p>a &amp; b</p>", "<p>a  &amp; b</p>\n"},
		{"an empty line before one that goes", "a\n\nb\nc\n", "a\nb\nc", "a\nc", "a\n\nc\n"},
		{"an empty line before one that comes", "a\n\nb\n", "a\nb", "a\nx\nb", "a\n\nx\nb\n"},
		{"an empty line too many", "a\nb\n", "a\n\nb", "a\n\nx\nb", "a\nx\nb\n"},
		{"a line goes, of CRLF", "a\r\n  b\r\nc\r\n", "\tb\n", "", "a\r\nc\r\n"},
		{"a part of a line", "x = f( a,  b ) + 1\n", "f( a, b )", "g(a)", "x = g(a) + 1\n"},
	} {
		got, places, err := textmatch.Replace(c.text, c.old, c.new, false)
		if err != nil || got != c.want || len(places) != 1 {
			t.Errorf("%s: %v, %d places\n%q, want\n%q", c.what, err, len(places), got, c.want)
		}
	}
	got, places, err := textmatch.Replace("a( 1 )\n\ta(  1 )\n", "a( 1  )", "b()", true)
	if got != "b()\n\tb()\n" || len(places) != 2 || err != nil {
		t.Errorf("everywhere: %q, %v, %v", got, places, err)
	}
	got, places, err = textmatch.ReplaceLines("if a:\n    x\nx\n", "x\n", "y\n")
	if got != "if a:\n    x\ny\n" || len(places) != 1 || err != nil {
		t.Errorf("the line that is the same to the last blank: %q, %v, %v", got, places, err)
	}
}

func TestNothingIsReplaced(t *testing.T) {
	for _, c := range []struct {
		what, text, old, new string
		places               int // 0: it is missing
	}{
		{"twice apart from blanks", "if x:\n  a\n\nif y:\n    a\n", "\ta", "b", 2},
		{"a dedent out of the file", "  a\n  b\n", "    a\n    b", "    a\n  b\nc", 0},
		{"a backslash that is no escape", "x = \"\\q\"\n", `x = \"\q\"`, `x = 1`, 0},
		{"from within a line to a block", "a = b( 1 )\n", "b(  1 )", "c(\n    1\n)", 0},
		{"tabs behind spaces", "\tx( )\n", "    x( ) ", "    x( )\n    \ty", 0},
		{"a key that looks like a line number", "a\nred\n", "10: red", "x", 0},
		{"before a property", "x.a  = 1\n", "a = 1", "b = 1", 0},
		{"negative", "v =  -1\n", "1 ", "2", 0},
		{"a form feed", "a\fb\n", "a b", "c", 0},
		{"a mark that joins", "e\u0301 = 1\n", "e  = 1", "x", 0},
		{"empty lines that are not there", "a\nb( )\nc\n", "b( ) \n\n", "B", 0},
		{"empty lines before it that are not there", "x\na\nb( )\n", "\n\nb( ) ", "B", 0},
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

// Whatever a quote is, only its places change, and nothing does where there are several.
func TestAnyQuote(t *testing.T) {
	gen := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\n\t\r\"“\u00a0\\n1:→&lt;`x")))
	rapid.Check(t, func(t *rapid.T) {
		text, old, new := gen.Draw(t, "text"), gen.Draw(t, "old"), gen.Draw(t, "new")
		if old == "" {
			return
		}
		all := rapid.Bool().Draw(t, "all")
		after, places, err := textmatch.Replace(text, old, new, all)
		if err != nil || len(places) > 1 && !all {
			if after != text {
				t.Fatalf("%v, %d places, and changed: %q", err, len(places), after)
			}
			return
		}
		var b strings.Builder
		from := 0
		for _, p := range places {
			if p.Start < from || p.End < p.Start {
				t.Fatalf("places that overlap: %v", places)
			}
			b.WriteString(text[from:p.Start] + p.New)
			from = p.End
		}
		if want := b.String() + text[from:]; after != want || len(places) == 0 {
			t.Fatalf("%q, want %q", after, want)
		}
	})
}

// row is a line, with the empty lines after it.
type row struct {
	depth int
	text  string
	empty int
}

// render returns the lines with that indentation.
func render(rows []row, unit string, end func() string) (text string) {
	for _, r := range rows {
		text += strings.Repeat(unit, r.depth) + r.text + end() + "\n" + strings.Repeat("\n", r.empty)
	}
	return text
}

// Whatever is wrong with the blanks of a quote and the empty lines in it, the result is that of the exact one, or
// nothing is changed.
func TestWrongWhitespace(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,3}( [a-z]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		empty := func() int { return rapid.IntRange(0, 2).Draw(t, "empty lines") }
		var rows []row
		depth := 0
		for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
			depth = max(0, depth+rapid.IntRange(-2, 1).Draw(t, "step"))
			rows = append(rows, row{depth, fmt.Sprint(word.Draw(t, "word"), i), empty()})
		}
		from := rapid.IntRange(0, len(rows)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(rows)).Draw(t, "to")
		last := rows[to-1].empty
		at := rapid.IntRange(from, to-1).Draw(t, "changed")
		change := func(part []row) []row { // the row at is another, and perhaps there is one more at the end
			part = slices.Clone(part)
			part[at-from].text += "x"
			part[len(part)-1].empty = 0
			if at%2 == 0 {
				part = append(part, row{part[at-from].depth, part[at-from].text + "y", 0})
			}
			return part
		}
		quoted := slices.Clone(rows[from:to])
		for i := range quoted {
			quoted[i].empty = empty()
		}
		quoted[len(quoted)-1].empty = 0
		changed := change(rows[from:to])
		changed[len(changed)-1].empty = last
		none := func() string { return "" }
		want := render(slices.Concat(rows[:from], changed, rows[to:]), "\t", none)
		text, unit := render(rows, "\t", none), rapid.SampledFrom([]string{"  ", "    ", "\t"}).Draw(t, "unit")
		end := func() string { return rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "end") }
		old, new := render(quoted, unit, end), render(change(quoted), unit, end)
		after, places, err := textmatch.Replace(text, old, new, false)
		trimmed := strings.NewReplacer(" \n", "\n", "\t\n", "\n").Replace
		switch {
		case err != nil || len(places) > 1:
			if after != text {
				t.Fatalf("%v, and changed: %q", err, after)
			}
		case trimmed(after) != want:
			t.Fatalf("%q\nquote %q\nnew %q\ngives %q\nwant  %q", text, old, new, after, want)
		}
	})
}
