package view

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
)

func at(kind string, member muster.Name, task muster.TaskID, fields ...any) muster.Event {
	e := muster.Event{Kind: kind, At: 1000, Member: member, Task: task, Fields: map[string]any{}}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i].(string)] = fields[i+1]
	}
	return e
}

var known = Facts{Check: "go test ./...", Subject: func(id muster.TaskID) string {
	return map[muster.TaskID]string{1: "tokenizer", 2: "counter", 4: "reader", 5: "report"}[id]
}}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		e    muster.Event
		want string // who|verb|text, + when it is shown, one a line
	}{
		{at("run.resumed", "lead", 0, "goal", "make it pass"), "+lead|again|make it pass"},
		{at(journal.RunEnded, "lead", 0, "text", "done", "code", 0.0), "lead|ends|exit 0: done"},
		{at(journal.CheckBase, "", 0, "result", "red", "seconds", 2.0, "command", "make"),
			"+landing|check|the base                  make  FAIL 2.0 s; until a landing turns it green, red ones are accepted"},
		{at(journal.CheckBase, "", 0, "result", "red", "seconds", 2.0, "command", "make", "failed", "TestA (a_test.go:4)"),
			"+landing|check|the base                  make  FAIL 2.0 s: TestA (a_test.go:4); until a landing turns it green, " +
				"red ones are accepted"},
		{at(journal.TaskReturned, "alice", 2, "reason", "check", "seconds", 0.6, "failed", "TestA (a_test.go:4), and 1 more", "text",
			"--- PASS: TestB\nFAIL\n"),
			"+landing|check|2 counter                 go test ./...  FAIL 0.6 s\n+landing|back|2 counter to alice: TestA (a_test.go:4), and 1 more on the merged tree"},
		{at(journal.MemberSpawned, "lead", 0, "role", "lead"), "lead|joins|lead"},
		{at(journal.MemberResumed, "bob", 0), "+bob|again|goes on with its conversation"},
		{at(journal.MemberWorking, "bob", 0), "bob|works|"},
		{at(journal.MemberIdle, "bob", 0, "reason", "awaiting_tasks"), "+bob|idle|waits for a task"},
		{at(journal.MemberIdle, "bob", 0, "reason", "something else"), "+bob|idle|something else"},
		{at(journal.MemberIdle, "lead", 0, "reason", "awaiting_messages"), "lead|idle|waits for mail"},
		{at(journal.MemberShutdown, "bob", 0, "reason", "nothing came in time"), "+bob|stops|nothing came in time"},
		{at(journal.TurnStarted, "bob", 0, "turn", 7.0), "bob|turn|7"},
		{at(journal.TurnEnded, "bob", 0, "stop", "tools", "input", 1200.0, "cache_read", 3000.0, "output", 90.0,
			"seconds", 1.5), "bob|said|tools  4.2k in, 90 out  1.5 s"},
		{at(journal.TurnEnded, "bob", 0, "stop", "end", "seconds", 0.5, "dollars", 0.0034), "bob|said|end  0 in, 0 out  0.5 s  $0.0034"},
		{at(journal.ToolStarted, "bob", 0, "tool", "bash", "text", "go test ./...", "subagent", true), "bob|tool|subagent's bash go test ./..."},
		{at(journal.ToolEnded, "bob", 0, "tool", "bash", "seconds", 0.5, "subagent", true), "bob|did|subagent's bash  0.5 s"},
		{at(journal.ToolEnded, "bob", 0, "tool", "bash", "seconds", 0.5, "error", "exit 1"), "bob|did|bash  0.5 s  error: exit 1"},
		{at(journal.TaskUpdated, "lead", 4, "changed", []any{"subject", "priority"}),
			"lead|edits|4 reader: subject, priority"},
		{at(journal.TaskUpdated, "user", 4, "changed", []any{"retry"}), "+user|retry|4 reader"},
		{at(journal.TaskReleased, "alice", 5, "reason", "cannot build it"), "+alice|leaves|5 report: cannot build it"},
		{at(journal.TaskRevoked, "bob", 5, "reason", "too slow", "by", "user"),
			"+user|frees|5 report from bob: too slow"},
		{at(journal.TaskLanding, "bob", 2, "head", "3f2a91cdd"), "bob|lands?|2 counter                 3f2a91c"},
		{at(journal.TaskReturned, "alice", 2, "reason", "check", "seconds", 0.6, "text",
			"ok  x\n--- FAIL: TestCountEmpty (0.00s)\nFAIL"),
			"+landing|check|2 counter                 go test ./...  FAIL 0.6 s\n+landing|back|2 counter to alice: --- FAIL: TestCountEmpty (0.00s) on the merged tree"},
		{at(journal.TaskReturned, "alice", 2, "reason", "conflict", "text", "report.go", "with", "task 1 of bob"),
			"+landing|back|2 counter to alice: conflict in report.go, with task 1 of bob"},
		{at(journal.TaskCompleted, "alice", 2, "commit", "3f2a91c00", "receipt", "not verified"),
			"+landing|lands|2 counter                 3f2a91c  no check is set"},
		{at(journal.TaskCompleted, "alice", 2, "commit", ""), "+alice|done|2 counter                 no change"},
		{at(journal.TaskAttention, "bob", 5, "reason", "came back 3 times, last: check"),
			"+board|needs|you: 5 report                  came back 3 times, last: check; muster task retry 5"},
		{at(journal.TaskDeleted, "lead", 5, "subject", "report"), "+lead|drops|5 report"},
		{at(journal.TaskEdgeRemoved, "lead", 5, "blocker", 4.0), "lead|edits|5 report no longer waits for 4"},
		{at(journal.MailSent, "alice", 0, "to", "bob", "type", "message", "text", "which\nformat?"),
			"+alice|mails|to bob: which format?"},
		{at(journal.MailSent, "system", 0, "to", "lead", "type", "message", "text", "the check fails"),
			"system|mails|to lead: the check fails"},
		{at(journal.MailSent, "alice", 0, "to", "lead", "type", "idle_notification", "text", "x"),
			"alice|mails|to lead: (news) x"},
		{at(journal.MailDelivered, "bob", 0, "count", 2.0), "bob|reads|2 mails"},
		{at(journal.MailRejected, "bob", 0, "text", "{x"),
			"+bob|note|a line of its inbox was no mail and is set aside: {x"},
		{at(journal.RequestCreated, "bob", 4, "request_id", "7f2c91aa", "kind", "plan_approval", "to", "lead", "text",
			"rewrite the reader"), "+bob|asks|plan for 4: rewrite the reader"},
		{at(journal.RequestCreated, "bob", 0, "request_id", "7f2c91aa", "kind", "permission", "to", "user", "text",
			"rm -rf build"), "+bob|asks|permission: rm -rf build; muster approve 7f2c91aa"},
		{at(journal.RequestCreated, "lead", 0, "request_id", "7f2c91aa", "kind", "shutdown", "to", "bob", "text",
			"done"), "+lead|asks|shutdown of bob: done"},
		{at(journal.RequestDecided, "bob", 4, "kind", "plan_approval", "status", "rejected", "by", "lead", "text",
			"keep the old one"), "+lead|no|bob's plan for 4: keep the old one"},
		{at(journal.RequestDecided, "bob", 4, "kind", "plan_approval", "status", "approved", "by", "user"),
			"+user|yes|bob's plan for 4"},
		{at(journal.RequestDecided, "lead", 0, "kind", "shutdown", "status", "approved", "by", "bob"),
			"bob|yes|lead's shutdown"},
		{at(journal.RequestDecided, "lead", 0, "kind", "shutdown", "status", "expired", "by", "system"),
			"+system|late|shutdown: no answer in time"},
		{at(journal.RequestDecided, "lead", 4, "kind", "plan_approval", "status", "cancelled", "by", "bob", "text",
			"not needed"), "bob|drops|lead's plan for 4: not needed"},
		{at(journal.LaneCreated, "alice", 1, "lane", "task-1", "branch", "wt/task-1"),
			"alice|lane|task-1 made on wt/task-1"},
		{at(journal.LaneFailed, "", 1, "lane", "task-1", "text", "disk full"),
			"+lanes|lane|task-1 failed: disk full; muster worktree list"},
		{at(journal.StateForeign, "", 3, "text", "another program changed it"),
			"+state|undone|another program changed it; use the commands of muster, or edit it when the team has stopped"},
		{at(journal.StateCorrupt, "", 3, "text", "task 3 cannot be read"),
			"+state|broken|task 3 cannot be read; muster doctor"},
		{at("moon.landed", "neil", 0, "at", "base"), `neil|event|moon.landed {"at":"base"}`},
		{at("task.polished", "alice", 1, "x", "\x1b[2Jboo"), `alice|event|task.polished {"x":"\u001b[2Jboo"}`},
	} {
		var got []string
		for _, l := range Lines(c.e, known) {
			s := l.Who + "|" + l.Verb + "|" + l.Text
			if l.Show {
				s = "+" + s
			}
			if len(l.Verb) > 6 {
				t.Errorf("the verb %q is longer than its column", l.Verb)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, "\n"); s != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.e.Kind, s, c.want)
		}
	}
}

// What agents write must not steer the terminal that shows it.
func TestLinesCannotSteerATerminal(t *testing.T) {
	evil := "a\x1b[2J\x07\r\n\u202eb\u009b31m"
	for _, kind := range []string{journal.RunStarted, journal.RunNote, journal.MemberSpawned, journal.MemberIdle,
		journal.MemberShutdown, journal.ToolStarted,
		journal.TaskCreated, journal.TaskClaimed, journal.TaskReleased, journal.TaskRevoked, journal.TaskReturned,
		journal.TaskCompleted, journal.TaskAttention,
		journal.MailSent, journal.RequestCreated, journal.RequestDecided, journal.LaneFailed, journal.StateCorrupt,
		journal.ModelRetry, journal.CheckBase, journal.CheckStarted} {
		fields := []any{}
		for _, f := range []string{"goal", "text", "role", "reason", "tool", "subject", "lane", "by", "to", "commit",
			"check", "receipt", "type", "command", "result", "kind", "status"} {
			fields = append(fields, f, evil)
		}
		for _, l := range Lines(at(kind, muster.Name(evil), 1, fields...),
			Facts{Subject: func(muster.TaskID) string { return evil }, Check: evil}) {
			if s := l.Who + l.Verb + l.Text; strings.ContainsAny(s, "\x1b\x07\r\n\u202e\u009b") {
				t.Errorf("%s: %q", kind, s)
			}
		}
	}
}

func TestFailureIsTheLineThatPeopleLookFor(t *testing.T) {
	for in, want := range map[string]string{
		"ok a\n--- FAIL: TestX\n    x.go:3: bad\nFAIL\n":                  "--- FAIL: TestX",
		"compiling\nx.go:1: Error: no such thing\nmore":                   "x.go:1: Error: no such thing",
		"# tally\n./main.go:9:2: undefined: x\nFAIL tally [build failed]": "./main.go:9:2: undefined: x",
		"first\nlast\n\n": "last",
		"":                "the check fails",
	} {
		if got := firstFailure(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Every kind that the journal lists is said in words; only what a newer program wrote is shown raw.
func TestEveryKindHasItsWords(t *testing.T) {
	source := require.Value(os.ReadFile(filepath.Join("..", "..", "journal", "kinds.go")))(t)
	kinds := regexp.MustCompile(`= "([a-z]+\.[a-z_]+)"`).FindAllSubmatch(source, -1)
	if len(kinds) < 30 {
		t.Fatalf("only %d kinds found", len(kinds))
	}
	for _, k := range kinds {
		for _, l := range Lines(at(string(k[1]), "alice", 1), known) {
			if l.Verb == "event" || l.Verb == "" {
				t.Errorf("%s: %+v", k[1], l)
			}
		}
	}
}
