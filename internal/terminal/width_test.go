package terminal

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/lineedit"
	"muster/internal/markdown"
	"muster/internal/text"
)

// TestWidths checks that all that draws text agrees about the columns of 200 texts: what counts columns, the line that
// is typed, what is printed, Markdown, and the library that draws frames.
func TestWidths(t *testing.T) {
	parts := []string{"a", "word", "日本語", "中文", "한국어", "ｗｉｄｅ", "é", "e\u0301", "n\u0303o", "ไทย", "\U0001F600", "\U0001F44D\U0001F3FD",
		"\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466", "\U0001F1E9\U0001F1EA", "\U0001F3F3\ufe0f\u200d\U0001F308", "❤\ufe0f", "☎", "✔", "1\ufe0f\u20e3", "─│╭"}
	count := 0
	for i, a := range parts {
		for j := range 10 {
			s := a + parts[(i+j*7+1)%len(parts)] + strings.Repeat(parts[(i*3+j)%len(parts)], j%3)
			count++
			want := ansi.WcWidth.StringWidth(s) // as bubbletea draws on a terminal that was not asked
			var b lineedit.Buffer
			b.Insert(s)
			for what, got := range map[string]int{
				"counted":  text.Columns(s),
				"typed":    lineedit.NewLayout(&b, 0, 200).X,
				"printed":  ansi.StringWidthWc(text.WrapColoured(s, 200, true)[0]),
				"Markdown": ansi.StringWidthWc(strings.Join(markdown.Draw(s, 200, false), "")),
				"padded":   ansi.StringWidthWc(text.PadColumns(s, 100)) - (100 - want),
			} {
				if got != want {
					t.Errorf("%q: %s it has %d columns, not %d", s, what, got, want)
				}
			}
			if rows := text.WrapColoured(s, want, false); len(rows) != 1 {
				t.Errorf("%q does not fit its own %d columns: %q", s, want, rows)
			}
		}
	}
	if count != 200 {
		t.Errorf("%d texts", count)
	}
}
