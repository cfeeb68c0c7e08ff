package markdown

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/text"
)

var update = flag.Bool("update", false, "write the pictures")

// TestPictures compares what is drawn of each text in testdata with its pictures.
func TestPictures(t *testing.T) {
	texts, err := filepath.Glob("testdata/*.md")
	if err != nil || len(texts) == 0 {
		t.Fatalf("no texts: %v", err)
	}
	for _, name := range texts {
		source := require.Value(os.ReadFile(name))(t)
		for _, width := range []int{12, 30, 80, 200} {
			for _, colour := range []bool{false, true} {
				picture := strings.TrimSuffix(name, ".md") + fmt.Sprintf("-%d", width)
				if colour {
					picture += "-colour"
				}
				got := strings.ReplaceAll(strings.Join(Draw(string(source), width, colour), "\n"), "\x1b", "^[") + "\n"
				if *update {
					require.NoError(t, os.WriteFile(picture, []byte(got), 0o600))
				}
				want := require.Value(os.ReadFile(picture))(t)
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", picture, diff)
				}
			}
		}
	}
}

// fragments are what texts of the properties are made of: marks of Markdown at places where they mean something and
// where not, wide characters, and what could steer a terminal.
var fragments = []string{"a", "word ", "longerword", " ", "\n", "\n\n", "  ", "    ", "- ", "1. ", "12) ", "* ", "# ", "> ",
	"```\n", "~~~\n", "`", "``", "*", "**", "_", "|", "|-|-|\n", "| b | c |\n", ":-:", "\\", "[", "](", ")", "!", "<b>",
	"<div>\n", "&lt;", "&#27;[31m", "---\n", "===\n", "\t", "日本", "e\u0301", "\U0001F44D", "\x1b[2J", "\x1b]0;t\a",
	"\u202e", "\u009b", "\r", "\xff", "[x]: y\n", "<http://e.org>", "+1", "-1", "~~~go\n", "if ", "\"", "/*"}

func drawText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 60).Draw(t, "text"), "")
}

// TestPiecesAndWhole checks that the rows of a text do not depend on the pieces in which it arrives, and that what
// grows is drawn as it will be.
func TestPiecesAndWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := drawText(t)
		width, colour := rapid.IntRange(1, 50).Draw(t, "width"), rapid.Bool().Draw(t, "colour")
		w := Writer{Colour: colour}
		var got []string
		for rest := source; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got = append(got, w.Add(rest[:n], width)...)
			rest = rest[n:]
		}
		growing := w.Growing(width)
		if end := w.End(width); !slices.Equal(growing, end) {
			t.Fatalf("%q was shown as %q and ended as %q", source, growing, end)
		}
		got = append(got, growing...)
		if want := Draw(source, width, colour); !slices.Equal(got, want) {
			t.Fatalf("%q in pieces: %q, whole: %q", source, got, want)
		}
		// With its marks, a text is the same with colours as without.
		marked := Marked(source, width, true)
		for i := range marked {
			marked[i] = ansi.Strip(marked[i])
		}
		if want := Draw(source, width, false); !slices.Equal(marked, want) {
			t.Fatalf("%q with marks: %q, without colours: %q", source, marked, want)
		}
	})
}

var language = regexp.MustCompile("(```|~~~).*[a-z日\U0001F44D]")

// TestNothingIsLostOrSteers checks that each letter of a text is drawn once, in rows that fit and hold no sequence but
// the colours of the package.
func TestNothingIsLostOrSteers(t *testing.T) {
	letters := func(s string) string {
		all := strings.Split(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r == '日' || r == '\U0001F44D' {
				return r
			}
			return -1
		}, s), "")
		slices.Sort(all)
		return strings.Join(all, "")
	}
	colours := strings.NewReplacer("\x1b[0", "", ";31", "", ";32", "", ";36", "", ";1", "", ";2", "", ";38;5;98", "", ";38;5;30", "",
		";38;5;67", "", ";3", "", "m", "")
	rapid.Check(t, func(t *rapid.T) {
		source, width := drawText(t), rapid.IntRange(2, 50).Draw(t, "width")
		if language.MatchString(strings.ReplaceAll(text.Clean(source), "\r", "")) {
			t.Skip("what stands behind the mark of code is its language, which is not shown")
		}
		rows := Draw(source, width, false)
		got := letters(strings.Join(rows, ""))
		// The letters of an entity stand for others, and a narrow table repeats its titles.
		want := letters(strings.NewReplacer("&lt;", "", "&#27;", "").Replace(source))
		for _, c := range want {
			if strings.Count(got, string(c)) < strings.Count(want, string(c)) {
				t.Fatalf("%q: the letters %q became %q:\n%s", source, want, got, strings.Join(rows, "\n"))
			}
		}
		if !strings.ContainsAny(source, "|&") && len(got) > len(want) {
			t.Fatalf("%q: the letters %q became %q:\n%s", source, want, got, strings.Join(rows, "\n"))
		}
		for _, colour := range []bool{false, true} {
			for _, r := range Draw(source, width, colour) {
				if n := ansi.StringWidthWc(r); n > width {
					t.Fatalf("%q: the row %q has %d columns of %d", source, r, n, width)
				}
				bare := ansi.Strip(r)
				if strings.ContainsFunc(bare, func(c rune) bool { return c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 }) ||
					strings.Contains(bare, "\u202e") {
					t.Fatalf("%q: the row %q could steer the terminal", source, r)
				}
				for _, s := range strings.SplitAfter(r, "\x1b")[1:] {
					head, _, _ := strings.Cut(s, "m")
					if !colour || colours.Replace("\x1b"+head) != "" {
						t.Fatalf("%q: a sequence in %q", source, r)
					}
				}
			}
		}
	})
}

// TestHugeBlocks checks that a text without an end is drawn in parts, in time: quadratic work would take minutes.
func TestHugeBlocks(t *testing.T) {
	tier.All(t)
	start := time.Now()
	for _, unit := range []string{"> ", "- ", "*", "[", "<", "a", "word ", "| a ", "1. ", "日", "![", "*a_", "&", "\\"} {
		w := Writer{Colour: true}
		rows := 0
		for range 200_000 / len(unit) / 100 {
			rows += len(w.Add(strings.Repeat(unit, 100), 80))
		}
		if rows += len(w.End(80)); rows == 0 {
			t.Errorf("nothing was drawn of %q", unit)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func BenchmarkGrowing(b *testing.B) {
	w := Writer{Colour: true}
	w.Add(strings.Repeat("Some *words* of a paragraph with `code` in them. ", 40), 80)
	for b.Loop() {
		w.Growing(80)
	}
}

// TestCode checks that code is coloured by its language, in a block of its own and within an item, also where a comment
// goes on over lines that come one by one.
func TestCode(t *testing.T) {
	for source, want := range map[string]string{
		"```go\nif x {\n/* a\nb */ 1\n```": "  \x1b[0;38;5;98mif\x1b[0m x {\n  \x1b[0;2m/* a\x1b[0m\n  \x1b[0;2mb */\x1b[0m \x1b[0;38;5;67m1\x1b[0m",
		"- a\n  ```js\n  'x'\n  ```":       "- a\n    \x1b[0;38;5;30m'x'\x1b[0m",
		"```\nif x\n```":                   "  \x1b[0;36mif x\x1b[0m",
		"```nothing\nif x\n```":            "  \x1b[0;36mif x\x1b[0m",
		"```diff\n+if x\n```":              "  \x1b[0;32m+if x\x1b[0m",
	} {
		if got := strings.Join(Draw(source, 40, true), "\n"); got != want {
			t.Errorf("%q is %q, want %q", source, got, want)
		}
	}
}
