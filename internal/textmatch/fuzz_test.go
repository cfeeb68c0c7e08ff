package textmatch_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/textmatch"
)

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

// A quote with other empty lines, as they are in the file or not, keeps those of the file.
func TestEmptyLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blanks := rapid.IntRange(0, 2)
		var file, quote, changed, want []string
		names := []string{"a", "b", "c", "d"}
		at := rapid.IntRange(0, 3).Draw(t, "changed")
		for i, name := range names {
			file, quote, changed, want = append(file, name), append(quote, name), append(changed, name), append(want, name)
			if i == at {
				changed[len(changed)-1], want[len(want)-1] = "x", "x"
			}
			if i == len(names)-1 {
				break
			}
			for range blanks.Draw(t, "file") {
				file, want = append(file, ""), append(want, "")
			}
			for range blanks.Draw(t, "quote") {
				quote, changed = append(quote, ""), append(changed, "")
			}
		}
		join := func(lines []string) string { return strings.Join(lines, "\n") }
		after, _, err := textmatch.Replace(join(file), join(quote), join(changed), false)
		if err != nil || after != join(want) {
			t.Fatalf("%q, quote %q, new %q: %v, %q", join(file), join(quote), join(changed), err, after)
		}
	})
}
