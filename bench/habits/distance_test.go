package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"muster/bench/habits/session"
	"muster/internal/compact"
	"muster/internal/testing/require"
)

// invented parses an invented session.
func invented(t *testing.T, name string) session.Session {
	return session.Parse(string(require.Value(os.ReadFile("session/testdata/" + name + ".md"))(t)))
}

func TestDistanceFromTheReadToTheEdit(t *testing.T) {
	talk := follow(invented(t, "claude"))
	if len(talk.distances) != 1 {
		t.Fatalf("the distances are %+v, want one", talk.distances)
	}
	between := 0
	for _, text := range []string{"Found 1 file\nsrc/parser.txt", "Exit code 2\na fence in the output:\n```\nnot the end",
		"<tool_use_error>String to replace not found in file.</tool_use_error>"} {
		between += compact.TextTokens(text)
	}
	got := talk.distances[0]
	if want := compact.TextTokens("     1→alpha\n     2→beta"); got.results != between || got.own != want {
		t.Errorf("%d tokens lie between the read and the edit, which has %d; want %d and %d", got.results, got.own, between, want)
	}
	// The read and the search came together; the failed edit is the third turn.
	if got.turns != 3 || !got.timed || !got.first {
		t.Errorf("the distance is %+v, want 3 turns of the first edit", got)
	}
	// The subagent has read the other file, and the agent itself has not.
	if want := [origins]int{byRead: 1, byNothing: 1}; talk.origins != want {
		t.Errorf("the origins are %v, want %v", talk.origins, want)
	}
	if want := []int{2, 1, 1, 1, 1, 1, 1}; !reflect.DeepEqual(talk.perTurn, want) || talk.firstEdit != 2 {
		t.Errorf("the turns have %v calls, and the first edit comes after %d of them", talk.perTurn, talk.firstEdit)
	}
}

func TestACommandShowsAFile(t *testing.T) {
	talk := follow(invented(t, "codex"))
	if want := [origins]int{byCommand: 1, byNothing: 1}; talk.origins != want {
		t.Errorf("the origins are %v, want %v", talk.origins, want)
	}
	if want := 4000 + compact.TextTokens("Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM docs/words.md\n"+
		"D docs/old.md"); talk.results != want {
		t.Errorf("the results have %d tokens, want %d: the export has cut one", talk.results, want)
	}
}

func TestASummaryEndsWhatWasRead(t *testing.T) {
	text := string(require.Value(os.ReadFile("session/testdata/claude.md"))(t))
	text = strings.Replace(text, "Now the change.", "_**User**_\n\nThis session is being continued from a previous conversation that ran out.\n\n_**Agent**_\n\nGo on.", 1)
	talk := follow(session.Parse(text))
	if want := [origins]int{bySummary: 1, byNothing: 1}; talk.origins != want || len(talk.distances) != 0 {
		t.Errorf("the origins are %v, want %v", talk.origins, want)
	}
}

func TestPathsOfOneFile(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"./src/a.go", "/home/x/p/src/a.go", true},
		{`c:\work\src\a.go`, "src/a.go", true},
		{"a.go", "/home/x/p/ba.go", false},
		{"src/a.go", "lib/a.go", false},
		{"", "a.go", false},
	} {
		if same(c.a, c.b) != c.want || same(c.b, c.a) != c.want {
			t.Errorf("same(%q, %q) is not %v", c.a, c.b, c.want)
		}
	}
}

func TestTheLongerExportOfASessionCounts(t *testing.T) {
	dir := t.TempDir()
	text := string(require.Value(os.ReadFile("session/testdata/claude.md"))(t))
	short := text[:strings.Index(text, "_**Agent (model-a 2026-01-02 10:00:30Z)**_")]
	for name, text := range map[string]string{"a/1.md": short, "b/2.md": text, "c/3.md": short} {
		require.NoError(t, os.MkdirAll(dir+"/"+name[:1], 0o700))
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	c := require.Value(load(dir))(t)
	if len(c.sources) != 1 || c.repeated != 2 || len(c.sources[0].calls()) != 9 || c.sources[0].repository != "b" {
		t.Errorf("%d sessions and %d copies were read: %+v", len(c.sources), c.repeated, c.sources)
	}
}
