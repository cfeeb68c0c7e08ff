package view

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

// Who comes later sees the members as they are, with their tasks, and no line of what has happened before.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	p := NewProgress(Options{Print: func(s string) { printed.WriteString(s) }, Start: time.Unix(1010, 0), OnlyLines: true,
		Task: func(muster.TaskID) (muster.Task, error) { return muster.Task{}, muster.Errorf(muster.NotFound, "none") }})
	catchUp := func(e muster.Event) { CatchUp(p, e) }
	at := func(then func(muster.Event), kind string, fields map[string]any) {
		then(muster.Event{Kind: kind, Member: "alice", Task: 2, At: 1000, Fields: fields})
	}
	row := func(want string) {
		t.Helper()
		if rows := p.Rows(time.Unix(1010, 0), 120, 10); len(rows) == 0 || rows[0] != want {
			t.Errorf("%q, want %q", rows, want)
		}
	}
	at(catchUp, journal.TaskCreated, map[string]any{"subject": "counter"})
	at(catchUp, journal.MemberSpawned, nil)
	at(catchUp, journal.TaskClaimed, nil)
	at(catchUp, journal.ToolStarted, map[string]any{"tool": "bash", "text": "go test"})
	row("alice     working  2 counter  bash go test  10 s")
	MarkStopped(p, time.Unix(1008, 0))
	row("alice     stopped  2 counter  2 s")
	at(p.Event, journal.MemberResumed, nil)
	row("alice     working  2 counter  10 s")
	if s := printed.String(); strings.Contains(s, "takes") || strings.Count(s, "\n") != 1 {
		t.Errorf("printed %q", s)
	}
}

// On a narrow terminal a text that does not fit stands below the names, in most of the width.
func TestANarrowLine(t *testing.T) {
	t.Parallel()
	l := Line{Who: "muster", Verb: "note", Text: "tools are not confined: they run with your rights", Tone: Bad}
	for width, want := range map[int]string{
		30: "  1.0s muster   note\n    tools are not confined:\n    they run with your rights",
		50: "  1.0s muster   note   tools are not confined:\n                       they run with your rights",
	} {
		if got := string(l.Append(nil, Paint{}, "  1.0s ", 8, width)); got != want {
			t.Errorf("at %d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
	l.Text = "a"
	if got, want := string(l.Append(nil, Paint{}, "  1.0s ", 8, 30)), "  1.0s muster   note   a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
