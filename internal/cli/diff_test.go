package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/redact"
	"muster/internal/treediff"
	"muster/internal/view"
	"muster/team"
)

// TestDiffOnATerminal checks that colours within a line keep no secret from being hidden, and where comments stand.
func TestDiffOnATerminal(t *testing.T) {
	secrets := redact.New("k3y-one-two-3456")
	d := team.Diff{Diff: treediff.Diff{Files: []treediff.FileChange{{File: "a.go"}}, Text: "diff --git a/a.go b/a.go\n@@ -1 +1 @@\n" +
		"-key := send(k3y-one-two-3456, all, of, it, and, more)\n+key := send(k3y-one-two-7890, all, of, it, and, more)\n"},
		Comments: []team.Comment{{File: "a.go", Line: 1, Quoted: "key", Text: "why?", To: "lead", Row: 3}}}
	got := drawDiff(view.Screen{Paint: view.Colours(nil), Width: 80}, d, secrets)
	if !strings.Contains(got, "48;5;28m") || strings.Contains(ansi.Strip(got), "3456") {
		t.Errorf("%q", got)
	}
	if want := regexp.MustCompile(`  1 \+key := send\(k3y-one-two-7890, all, of, it, and, more\) *\n  you to lead: why\?\n$`); !want.MatchString(ansi.Strip(got)) {
		t.Errorf("%s does not end with %s", ansi.Strip(got), want)
	}
	got = drawDiff(view.Screen{}, d, secrets)
	if want := "a.go:1: key\n  you to lead: why?\ndiff --git a/a.go b/a.go\n@@ -1 +1 @@\n-key := send("; !strings.HasPrefix(got, want) {
		t.Errorf("%s does not begin with %s", got, want)
	}
}
