package main

import (
	"os"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

func TestTablesOfInventedSessions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir+"/owner+name", os.DirFS("session/testdata")))
	var b strings.Builder
	require.Value(load(dir))(t).print(&b)
	for _, want := range []string{
		"5 files; 5 sessions with calls, of 1 repositories; 0 more are copies of one of them.",
		"| Cursor | 1 | 1 | 4 | 100.0% | 50.0% | 0.0% | 0 | 1 |",
		"| Claude Code | 1 | 1 | 9 | 77.8% | 100.0% | 0.0% | 0 | 0 |",
		"Claude Code: between the last read of a file and its edit, in 1 repositories",
		"| turns between them | 3 | 3 | 3 | 3 | 3 | 1 |",
		"Of 2 edits 50.0% follow a read, 0.0% a command that shows the file, 0.0% only the agent's own edit of it, " +
			"0.0% a read before a summary, and 50.0% nothing that the export shows.",
		"| Claude Code | 1.14 | 85.7% | 14.3% | 0.0% | 7 |",
		"| Claude Code: turns | 2 | 2 | 2 | 2 | 2 | 1 |",
		"| Claude Code | 100.0% | 100.0% | 100.0% | 100.0% | none | none | 100.0% of 1 | 1 |",
		"| Cursor | 100.0% | 100.0% | 100.0% | 100.0% | none | none | not in the export | 1 |",
		"| Claude Code | edit | 25.0% | 25.0% | 4 | 0 |",
		"| Cursor | edit | 0.0% | 0.0% | 1 | 0 |",
		"| the old text is not in the file | 100.0% |",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("the output has no line %q:\n%s", want, b.String())
		}
	}
}
