package view

import (
	"slices"
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
		rows := p.Rows(Paint{}, now, 120, func(muster.TaskID) string { return "counter" })
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
	row("alice     idle     2 counter  no task  0 s")
}

// A member that asks the user needs them until it was answered, whatever tool its events say that it runs.
func TestWhoNeedsTheUser(t *testing.T) {
	t.Parallel()
	var p Presence
	p.Apply(muster.Event{Kind: journal.ToolStarted, Member: "alice", At: 1000, Fields: map[string]any{"tool": "bash", "text": "rm -rf build"}})
	p.Apply(muster.Event{Kind: journal.ToolStarted, Member: "bob", At: 1000, Fields: map[string]any{"tool": "bash", "text": "go test"}})
	o := Overview{Alive: true, Members: []Member{{Alive: true, Member: muster.Member{Name: "alice", Status: muster.Working, Doing: "waits for your answer to 7f"}}},
		Requests: []muster.Request{{ID: "7f", From: "alice", To: muster.User, Kind: muster.AskPermission}}}
	rows := func(want ...string) {
		t.Helper()
		p.noteResting(o)
		got := p.Rows(Paint{}, time.Unix(1000, 0), 120, func(muster.TaskID) string { return "" })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rows("alice     needs you  permission  0 s", "bob       working    bash go test  0 s")
	o.Requests, o.Members[0].Doing = nil, ""
	rows("alice     working  0 s", "bob       working    bash go test  0 s")
}
