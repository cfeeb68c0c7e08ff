package hooks

import (
	"encoding/json"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
)

// A call is seen under the names that people know, and what hooks change comes back under ours.
func TestCallsAreTranslatedBothWays(t *testing.T) {
	for _, c := range []struct{ tool, input, name, want, back string }{
		{"bash", `{"command":"ls","timeout":5,"background":true}`, "Bash",
			`{"command":"ls","run_in_background":true,"timeout":5000}`, `{"background":true,"command":"ls","timeout":5}`},
		{"edit_file", `{"path":"a.go","old_text":"x","new_text":"y","replace_all":true}`, "Edit",
			`{"file_path":"/lane/a.go","new_string":"y","old_string":"x","replace_all":true}`,
			`{"new_text":"y","old_text":"x","path":"/lane/a.go","replace_all":true}`},
		{"edit_file", `{"path":"/b.go","edits":[{"old_text":"x","new_text":"y"}]}`, "Edit",
			`{"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/b.go"}`,
			`{"edits":[{"new_text":"y","old_text":"x"}],"path":"/b.go"}`},
		{"write_file", `{"path":"a","content":"old_text"}`, "Write", `{"content":"old_text","file_path":"/lane/a"}`,
			`{"content":"old_text","path":"/lane/a"}`},
		{"read_file", `{"path":"a","offset":12345678901234567890}`, "Read",
			`{"file_path":"/lane/a","offset":12345678901234567890}`, `{"offset":12345678901234567890,"path":"/lane/a"}`},
		{"grep", `{"pattern":"x","path":"d"}`, "Grep", `{"path":"d","pattern":"x"}`, `{"path":"d","pattern":"x"}`},
		{"subagent", `{"prompt":"p","kind":"explore"}`, "Task", `{"prompt":"p","subagent_type":"explore"}`,
			`{"kind":"explore","prompt":"p"}`},
		{"todo", `{"items":[{"id":"1","text":"t"}]}`, "TodoWrite", `{"todos":[{"content":"t","id":"1"}]}`,
			`{"items":[{"id":"1","text":"t"}]}`},
		{"mcp__github__search", `{"path":"x"}`, "mcp__github__search", `{"path":"x"}`, `{"path":"x"}`},
	} {
		calls := Calls(llm.Call{Name: c.tool, Input: json.RawMessage(c.input)}, "/lane")
		if len(calls) != 1 || calls[0].Names[0] != c.name {
			t.Fatalf("%s is seen as %+v", c.tool, calls)
		}
		if got := encode(t, calls[0].Input); got != c.want {
			t.Errorf("%s: hooks see %s, want %s", c.tool, got, c.want)
		}
		in, _ := decode([]byte(encode(t, calls[0].Input)))
		if got := string(calls[0].Changed(in).Input); got != c.back {
			t.Errorf("%s: it comes back as %s, want %s", c.tool, got, c.back)
		}
		if got := string(calls[0].Changed(nil).Input); got != c.input {
			t.Errorf("%s: unchanged it is %s", c.tool, got)
		}
	}
	for _, in := range []string{`{"x":1}`, `"{\"x\":1}"`} {
		call := llm.Call{Name: "call_tool", Input: json.RawMessage(`{"name":"mcp__a__b","input":` + in + `}`)}
		c := Calls(call, "/lane")[0]
		back := string(c.Changed(map[string]any{"y": 2}).Input)
		if encode(t, c.Input) != `{"x":1}` || c.Names[0] != "mcp__a__b" || back != `{"input":{"y":2},"name":"mcp__a__b"}` {
			t.Errorf("%s is seen as %+v and comes back as %s", call.Input, c, back)
		}
	}
	for matcher, want := range map[string]bool{"mcp__a__b": true, "mcp__a__.*": true, "Bash|mcp__A__b": true, "mcp__a": true,
		"mcp__b": false} {
		h := Hook{Matcher: matcher}
		if h.compile(); h.matches([]string{"MCP__a__B", "call_tool"}) != want {
			t.Errorf("%q matches the call of a server's tool: %v", matcher, !want)
		}
	}
	if calls := Calls(llm.Call{Name: "bash", Input: json.RawMessage(`[1]`)}, "/lane"); calls != nil {
		t.Errorf("a call without an object is seen as %+v", calls)
	}
}

// A patch is an edit of each of its files, so that no guard of a file is passed by it.
func TestAPatchIsAnEditOfEachFile(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n+x\n*** Add File: /c\n*** End Patch\n"
	data, _ := json.Marshal(map[string]string{"input": patch})
	calls := Calls(llm.Call{Name: "apply_patch", Input: data}, "/lane")
	var files []any
	for _, c := range calls {
		files = append(files, c.Input["file_path"])
		if c.Names[0] != "Edit" || string(c.Changed(map[string]any{"file_path": "x"}).Input) != string(data) {
			t.Errorf("it is seen as %+v", c)
		}
	}
	if got := encode(t, files); got != `["/lane/a.go","/lane/b.go","/c"]` {
		t.Errorf("the files are %s", got)
	}
}

// Matchers are names, lists of names, or expressions, of people's names of tools and of ours.
func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		matcher, tool string
		want          bool
	}{
		{"", "bash", true}, {"*", "bash", true}, {"Bash", "bash", true}, {"bash", "bash", true}, {"Bas", "bash", false},
		{"BASH", "bash", true}, {"Edit|Write", "write_file", true}, {"Edit|Write", "edit_file", true},
		{"MultiEdit", "edit_file", true}, {"Write", "apply_patch", true}, {"Edit|Write", "read_file", false},
		{"mcp__memory", "mcp__memory__get", true}, {"mcp__memory", "mcp__memory2__get", false}, {"mcp__memory__.*", "mcp__memory__get", true},
		{"^Notebook", "bash", false}, {"Ba.h", "bash", true}, {"Bash", "worktree_run", true}, {".*", "wait", true},
		{"Task", "subagent", true},
		{"Edit, Write", "write_file", true}, {"Edit | Write", "write_file", true}, {"Write,Edit", "edit_file", true},
		{" Write ", "write_file", true}, {"Edit Write", "write_file", true}, {"Edit;Write", "write_file", true},
		{"Edit, Write", "read_file", false}, {"write", "write_file", true}, {"Edit, mcp__git__.*", "mcp__git__push", true},
		{"^(Edit | Write)$", "write_file", true}, {"^(Edit|Write)$", "read_file", false}, {"edit.*", "edit_file", true},
		{"/^(edit|write)$/i", "write_file", true}, {"/Bash/", "bash", true}, {"mcp__*", "mcp__a__b", true},
		{"*Edit", "edit_file", true}, {"Edit*", "edit_file", true}, {"mcp__git__*", "mcp__git__push", true},
		{"mcp__git__*", "mcp__hub__push", false}, {"^(?!Read|Grep).*$", "bash", true}, {"^(?!Read|Grep).*$", "read_file", false},
		{"(?!Read)", "grep", true}, {"'Bash'", "bash", true}, {"Bash, *", "wait", true},
		{"B[a,s ]*h", "bash", true}, {"mcp__my-server", "mcp__my-server__x", true},
	} {
		h := Hook{Matcher: c.matcher}
		if h.compile(); h.Problem != "" || h.matches(ToolNames(c.tool)) != c.want {
			t.Errorf("%q matches %s: %v, want %v (%s)", c.matcher, c.tool, !c.want, c.want, h.Problem)
		}
	}
}

// A matcher that can match nothing is a problem, and a name of no tool in one that can is a note.
func TestMatchersThatFitNothing(t *testing.T) {
	for _, c := range []struct {
		event            Event
		matcher, problem string
		notes            string
	}{
		{PreToolUse, "Wriet", "its matcher Wriet fits no tool of muster", ""},
		{PreToolUse, "Edit|Wriet", "", "its matcher names Wriet, which is no tool of muster"},
		{PreToolUse, "Edit|NotebookEdit", "", ""},
		{PreToolUse, "WebFetch", "its matcher WebFetch fits no tool of muster", ""},
		{PreToolUse, "Bash(git *)", "its matcher Bash(git *) fits no tool of muster", ""},
		{PreToolUse, "^Notebook", "its matcher ^Notebook fits no tool of muster", ""},
		{PreToolUse, "|", "its matcher | names nothing", ""},
		{PreToolUse, "(?<=x)y", "its matcher (?<=x)y is neither a list of names nor a regular expression of RE2", ""},
		{PostToolUse, "mcp__any__thing", "", ""}, {PostToolUse, "mcp__any", "", ""}, {PreToolUse, "mcp__.*__write.*", "", ""},
		{PreToolUse, "write_file, task_create", "", ""},
		{SessionStart, "startup|clear", "", ""},
		{SessionStart, "compact", "its matcher compact fits nothing of SessionStart, which has startup, resume", ""},
		{Notification, "needs_attention", "", ""},
		{Stop, "whatever", "", ""},
	} {
		h := Hook{Event: c.event, Matcher: c.matcher}
		if h.compile(); h.Problem != c.problem || strings.Join(h.Notes(), "; ") != c.notes {
			t.Errorf("%s %q: problem %q, notes %q; want %q, %q", c.event, c.matcher, h.Problem, h.Notes(), c.problem, c.notes)
		}
	}
}

// What a hook prints and how it ends decide, in the forms that hooks of people have.
func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		name    string
		event   Event
		ended   ended
		want    string // the outcome as JSON
		message string
	}{
		{"silence", PreToolUse, ended{}, `{}`, ""},
		{"text of a tool's hook is for people", PreToolUse, ended{stdout: "fine"}, `{}`, ""},
		{"text is context at the start", SessionStart, ended{stdout: "on main\n"}, `{"Context":["on main"]}`, ""},
		{"exit 2", PreToolUse, ended{exit: 2, stdout: `{"decision":"approve"}`, stderr: "no\x1b[31m\n"},
			`{"Blocked":true,"Reason":"no[31m"}`, ""},
		{"deny", PreToolUse, ended{stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse",` +
			`"permissionDecision":"deny","permissionDecisionReason":"not here"}}`}, `{"Blocked":true,"Reason":"not here"}`, ""},
		{"ask", PreToolUse, ended{stdout: `{"hookSpecificOutput":{"permissionDecision":"ask",` +
			`"permissionDecisionReason":"sure?"}}`},
			`{"Blocked":true,"Reason":"it asks for the user, who is not asked here: sure?"}`, ""},
		{"the older form", PreToolUse, ended{stdout: `{"decision":"block","reason":"old"}`},
			`{"Blocked":true,"Reason":"old"}`, ""},
		{"allow with another input", PreToolUse, ended{stdout: `{"hookSpecificOutput":{"permissionDecision":"allow",` +
			`"updatedInput":{"command":"ls"},"additionalContext":"ctx"},"systemMessage":"hi","suppressOutput":true}`},
			`{"Context":["ctx"],"Input":{"command":"ls"}}`, "hi"},
		{"continue: false", PreToolUse, ended{stdout: `{"continue":false,"stopReason":"halt"}`},
			`{"Blocked":true,"Reason":"halt"}`, "halt"},
		{"continue: false lets a stop be", Stop,
			ended{stdout: `{"continue":false,"stopReason":"halt","decision":"block"}`}, `{}`, "halt"},
	} {
		o, message, err := c.ended.decide(c.event)
		got := map[string]any{}
		if o.Blocked {
			got["Blocked"], got["Reason"] = true, o.Reason
		}
		if o.Context != nil {
			got["Context"] = o.Context
		}
		if o.Input != nil {
			got["Input"] = o.Input
		}
		if err != nil || encode(t, got) != c.want || message != c.message {
			t.Errorf("%s: %s, message %q, error %v; want %s, %q", c.name, encode(t, got), message, err, c.want, c.message)
		}
	}
	for _, text := range []string{"{", `{"decision": 3}`, `{"hookSpecificOutput": "x"}`} {
		if o, _, err := (ended{stdout: text}).decide(PreToolUse); err == nil || o.Blocked {
			t.Errorf("%q: %+v, %v", text, o, err)
		}
	}
}

// encode returns a value as JSON.
func encode(t *testing.T, v any) string {
	t.Helper()
	return string(require.Value(json.Marshal(v))(t))
}
