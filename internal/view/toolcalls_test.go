package view

import (
	"encoding/json"
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// TestToolCall draws calls whose input and output may be anything.
func TestToolCall(t *testing.T) {
	for _, c := range []struct {
		input, output   string
		hasEnded, isBad bool
		want            string
	}{
		{`{"path":"a.go","content":"one\ntwo\n","n":3}`, "written", true, false,
			"write\n  content: \n    one\n    two\n  n: 3\n  path: a.go\n  output\n    written"},
		{`{"b":[1,"x"]}`, "", false, false, "write\n  b: [1,\"x\"]\n  it has not answered yet"},
		{`not json \u001b`, "no\x1b[2J\u202e", true, true, "write\n  input: not json \\u001b\n  error\n    no[2J"},
		{`{}`, " \n", true, false, "write\n  no output"},
	} {
		same(t, ToolCall(Paint{}, "write", json.RawMessage(c.input), c.output, c.hasEnded, c.isBad), c.want)
	}
}

// TestToolLines checks that only a conversation has lines of the lead's own calls, and that their numbers open them.
func TestToolLines(t *testing.T) {
	for _, isConversation := range []bool{true, false} {
		var out strings.Builder
		p := NewProgress(Options{OnlyLines: isConversation, Print: func(s string) { out.WriteString(s) }, Start: muster.Time(1000)})
		call := func(who muster.Name, id, tool string, more ...any) {
			fields := append([]any{"tool", tool, "call", id}, more...)
			p.Event(at(journal.ToolStarted, who, 0, append(fields, "text", "x.go")...))
			p.Event(at(journal.ToolEnded, who, 0, append(fields, "seconds", 1.5)...))
		}
		call("lead", "a", "read_file")
		call("alice", "b", "read_file")
		call("lead", "c", "grep", "subagent", true)
		call("lead", "d", "task_create")
		call("lead", "e", "bash", "error", "[exit 3]")
		want := ""
		if isConversation {
			want = "  0.0s read_file  x.go  1.5 s  [1]\n" +
				"  0.0s bash  x.go  1.5 s  error: [exit 3]  [2]\n"
		}
		same(t, out.String(), want)
		id := func(number int) string { e, _ := p.Call(number); return e.Text("call") }
		if isConversation && (id(0) != "e" || id(1) != "a" || id(3) != "") {
			t.Errorf("the calls %q, %q, %q", id(0), id(1), id(3))
		}
	}
}
