package view

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

// A member's row says where it is in its own steps, as long as it works and has not done all.
func TestTheStepOfAMember(t *testing.T) {
	t.Parallel()
	var p Presence
	now := time.Unix(1000, 0)
	at := func(kind string, fields map[string]any) {
		p.Apply(muster.Event{Kind: kind, Member: "alice", Task: 2, At: 1000, Fields: fields})
	}
	row := func(want string) {
		t.Helper()
		rows := p.Rows(false, now, 120, func(muster.TaskID) string { return "counter" })
		if len(rows) != 1 || rows[0] != want {
			t.Errorf("%q, want %q", rows, want)
		}
	}
	at(journal.TaskClaimed, nil) // may be told before the member's spawning
	at(journal.MemberSpawned, nil)
	at(journal.MemberWorking, nil)
	at(journal.MemberSteps, map[string]any{"done": 1., "of": 3., "text": "write\nthe parser"})
	at(journal.ToolStarted, map[string]any{"tool": "bash", "text": "go test"})
	row("alice     working  2 counter  2 of 3, write the parser: bash go test  0 s")
	at(journal.MemberSteps, map[string]any{"done": 1., "of": 3., "text": ""})
	row("alice     working  2 counter  1 of 3: bash go test  0 s")
	at(journal.MemberSteps, map[string]any{"done": 3., "of": 3.})
	row("alice     working  2 counter  bash go test  0 s")
	at(journal.MemberSteps, map[string]any{"done": 0., "of": 1., "text": "look"})
	at(journal.MemberIdle, map[string]any{"reason": "no_task"})
	row("alice     idle     2 counter  no_task  0 s")
}

// A member that has asked for permission waits for the user, until the answer has come.
func TestAMemberWaitsForAnAnswer(t *testing.T) {
	var p Presence
	row := func(kind string, want string, fields ...any) {
		t.Helper()
		p.Apply(at(kind, "bob", 0, fields...))
		rows := p.Rows(true, time.Unix(1000, 0), 120, func(muster.TaskID) string { return "" })
		if len(rows) != 1 || !strings.HasSuffix(rows[0], want) {
			t.Errorf("%s: %q, want %q", kind, rows, want)
		}
	}
	row(journal.ToolStarted, "\x1b[0m  working  bash git push  0 s", "tool", "bash", "text", "git push")
	row(journal.RequestCreated, "\x1b["+Amber+"m  waiting  for your answer\x1b[0m  0 s", "kind", "permission")
	row(journal.RequestDecided, "\x1b[0m  working  0 s", "kind", "permission", "status", "approved")
	row(journal.RequestCreated, "\x1b[0m  working  0 s", "kind", "plan_approval") // it may be the lead's to answer
}
