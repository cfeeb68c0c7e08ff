//go:build unix

package terminal

import (
	"strings"
	"testing"

	"muster/internal/testing/tier"
)

// drawnAnswer is what markdownAnswer looks like on 80 columns.
const drawnAnswer = `Found

The lock is taken ]0;title[31m before each write, so that no two of us write at
the same moment.

1. a test
2. the fix:
     x := 1

     y := 2

A  B
1  two
`

// TestMarkdown streams Markdown word by word in a real terminal. Each block goes into the scrollback once, as it is
// drawn, and what grows is seen before.
func TestMarkdown(t *testing.T) {
	tier.All(t)
	t.Parallel()
	m := shell(t)
	m.Keys("MUSTER_TALK=markdown talk", "Enter")
	m.Wait(`(?s)ready.*bob.*> $`)
	m.Keys("/answer", "Enter")
	m.Wait(`(?s)1  two\nalice  working  task 2\nbob    idle\n> $`)
	if got := strings.Replace(m.History(), "meanwhile\n", "", 1); !strings.Contains(got, "> /answer\n"+drawnAnswer) {
		t.Errorf("drawn:\n%s", got)
	}
	if got := m.Tmux("capture-pane", "-p", "-e"); !strings.Contains(got, "\x1b[1mlock\x1b[0m") {
		t.Errorf("the word is not bold: %q", got)
	}
}
