package view

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/difflines"
)

const patch = "diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -8,4 +8,5 @@ func f()\n \tif 世 {\n-\treturn one(a, 1)\x1b[2J\r\n+\treturn two(a, 1)\n+\n }\n"

func below(row int) string { return map[int]string{6: "  why?\n"}[row] }

func TestDiff(t *testing.T) {
	lines := difflines.Parse(patch, []string{"x.go"})
	// On a terminal the lines have their numbers, and the words that were changed stand out.
	plain := `x.go  +2 -1
@@ -8,4 +8,5 @@ func f()
 8  8      if 世 {
 9    -    return one(a, 1)[2J
    9 +    return two(a, 1)
  why?
   10 +
10 11  }
`
	same(t, Diff(Screen{Width: 80}, lines, below), plain)
	coloured := Diff(Screen{Colours(nil), 80}, lines, below)
	same(t, regexp.MustCompile(` +\n`).ReplaceAllString(ansi.Strip(coloured), "\n"), plain)
	for _, want := range []string{"\x1b[1mx.go\x1b[0m  \x1b[32m+2\x1b[0m \x1b[31m-1\x1b[0m\n", "\x1b[36m@@ -8,4", "\x1b[2m 9    \x1b[0m\x1b[38;5;253;48;5;52m-    ",
		"\x1b[38;5;253;48;5;52;38;5;183mreturn\x1b[0m", "\x1b[38;5;253;48;5;52;48;5;88mone\x1b[0m\x1b[38;5;253;48;5;52m(a, ",
		"\x1b[38;5;253;48;5;22;48;5;28mtwo\x1b[0m\x1b[38;5;253;48;5;22m(a, ", "    \x1b[38;5;98mif\x1b[0m 世 {"} {
		if !strings.Contains(coloured, want) {
			t.Errorf("there is no %q in\n%q", want, coloured)
		}
	}
	if strings.Contains(coloured, "\x1b[2J") {
		t.Error("the text steers the terminal")
	}
	light := Colours(nil).InFull()
	light.OnLight(true)
	if got := Diff(Screen{light, 80}, lines, below); !strings.Contains(got, "\x1b[38;5;235;48;2;224;246;224;38;5;98mreturn\x1b[0m") {
		t.Errorf("%q", got)
	}
	// A narrow terminal has no room for numbers.
	if got := Diff(Screen{Width: 59}, lines, below); !strings.Contains(got, "\n-    return one") {
		t.Error(got)
	}
	// What does not fit is wrapped below the text.
	if got := Diff(Screen{Width: 20}, lines, below); !strings.Contains(got, "\n+    return two(a,\n     1)\n") {
		t.Error(got)
	}
	// Without a terminal it is a patch, with its tabs and the ends of its lines.
	same(t, Diff(Screen{}, lines, nil), strings.ReplaceAll(patch, "\x1b", ""))
}

// TestDiffLinesAreCut: a row takes at most the columns that it has, and tabs and wide characters line up.
func TestDiffLinesAreCut(t *testing.T) {
	lines := difflines.Parse("diff --git a/x b/x\n@@ -100 +100,3 @@\n-a\tb世\t世世c👍\td\n+ab\tb世\t世世c👍\td\n+"+strings.Repeat("世", 100)+"\n+"+strings.Repeat("a b ", 1<<20)+"\n", nil)
	difflines.Mark(lines)
	look := NewDiffLook(Paint{}, lines, 80)
	same(t, look.Row(lines[2], 0), "100     -a   b世 世世c👍 d")
	same(t, look.Row(lines[3], 0), "    100 +ab  b世 世世c👍 d")
	for _, p := range []Paint{{}, Colours(nil)} {
		look.Paint = p
		for _, l := range lines {
			for _, columns := range []int{12, 13, 20, 21, 60} {
				if got := look.Row(l, columns); ansi.StringWidthWc(got) > columns {
					t.Errorf("%q is wider than %d", got, columns)
				}
			}
		}
	}
	same(t, ansi.Strip(look.Row(lines[4], 20)), "    101 +世世世世...")
}
