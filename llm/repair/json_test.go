package repair_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/repair"
)

func TestObject(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1}`:                                `{"a":1}`,
		``:                                       `{}`,
		"{\"a\":\"x\ny\tz\"}":                    `{"a":"x\u000ay\u0009z"}`,
		`{"a":1,}`:                               `{"a":1}`,
		`{"a":[1,2,],}`:                          `{"a":[1,2]}`,
		`{'a': 'say "x"', 'b': True, 'c': None}`: `{"a":"say \"x\"","b":true,"c":null}`,
		`{'a': 'it\'s'}`:                         `{"a":"it's"}`,
		`{a: "x", b_2: false}`:                   `{"a":"x","b_2":false}`,
		"```json\n{\"a\":1}\n```":                `{"a":1}`,
		`{"a":"x"`:                               `{"a":"x"}`,
		`{"a":{"b":"c"}`:                         `{"a":{"b":"c"}}`,
		`{"a":"x"}}`:                             `{"a":"x"}`,
		`"{\"a\":\"x\"}"`:                        `{"a":"x"}`,
		`{\"a\":\"x\"}`:                          `{"a":"x"}`,
		`{"a":1 /* one */, // two` + "\n}":       `{"a":1}`,
		`{"a":"\d+\.go"}`:                        `{"a":"\\d+\\.go"}`,
		`[{"a":1}]`:                              `{"a":1}`,
		`{}{"a":1}`:                              `{"a":1}`,
		`{"a":1}{"a":1}`:                         `{"a":1}`,
		`{“a”: “x”}`:                             `{"a":"x"}`,
		`{"a":1}]`:                               `{"a":1}`,
		"{\"a\":1}\n</tool_call><|im_end|>":      `{"a":1}`,
		`{"a":"x"</tool_call>`:                   `{"a":"x"}`,
		"```json {\"a\":1} ```":                  `{"a":1}`,
		`{{a:"x"}}`:                              `{"a":"x"}`,
		`{a:<|"|>say "\n"<|"|>,b:[<|">c<|">]}`:   `{"a":"say \"\\n\"","b":["c"]}`,
		`{"a": \n1,\n\t"b":2\n}`:                 `{"a":1,"b":2}`,
	} {
		if got, err := repair.Object([]byte(raw)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
}

func TestObjectRefusesWhatHasNoSingleReading(t *testing.T) {
	for _, raw := range []string{
		`{"a":"x`, `{"a":`, `{"a"`, `{"a":"x",`, `{"a":12`, `{"a":[1,2]`[:9], `{"a":[{"b":"c"}`, `{"a":"x\`, `{`, `{"a":tru`,
		`{"a":"say "x""}`, `{'a': 'it's'}`, `{"a":"\bx\d"}`, `{"a":"it\'s"}`, `{"a":"\x41"}`, `{"a":1}{"a":2}`, `[1]`,
		`[{"a":1},{"a":2}]`, `{"a":1} and more`, `ls -l`, `{"a" "b"}`, `{,}`, `{"a":1,,}`, `{"a":NaN}`, `{"a":.5}`,
		`{"a":1},{"a":2}]`, `{"a":1}</tool_call> and more`, `{{"a":1},{"b":2}}`, `{"a":<|"|>x`, `[1</tool_call>`,
		"```\n{\"a\":1}", strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101) + ",",
	} {
		if got, err := repair.Object([]byte(raw)); err == nil {
			t.Errorf("%s was taken for %s", raw, got)
		}
	}
}

// A valid object keeps its meaning, and one that was cut anywhere but before its last brace is never taken for another.
func TestObjectNeverRunsWhatWasCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.String(), 1, 4).Draw(t, "in")
		data := require.Value(json.Marshal(in))(t)
		cut := rapid.IntRange(1, len(data)).Draw(t, "cut")
		got, err := repair.Object(data[:cut])
		if whole := cut >= len(data)-1; whole != (err == nil) && !(cut < len(data)-1 && data[cut-1] == '"') {
			t.Fatalf("%s: %s, %v", data[:cut], got, err)
		}
	})
}

func TestName(t *testing.T) {
	tools := []string{"bash", "read_file", "write_file", "task_create", "send_message", "list_teammates", "subagent"}
	for name, want := range map[string]string{
		"bash": "bash", "Bash": "bash", "functions.bash": "bash", "functions.bash:0": "bash", "default_api:bash": "bash",
		"bash<|channel|>commentary": "bash", "Read": "read_file", "ReadFile": "read_file", "read-file": "read_file",
		"mcp__muster__task_create": "task_create", "TaskCreate": "task_create", "SendMessage": "send_message",
		"list_teammates</arg_value>": "list_teammates", "functions_bash_1": "bash", "functionsexec5": "bash",
		"bash1": "", "functions": "", "bash:rm": "", "BashBash": "bash", "read_fileread_file": "read_file",
		"list_team": "list_teammates", "Task": "subagent", "shell": "bash", " bash ": "bash",
		"": "", "rm": "", "batch": "", "mcp__github__bash": "", "grep": "", "write_files": "", "write": "write_file",
	} {
		if got := repair.Name(name, tools); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	tools := []string{"bash", "read_file", "write_file", "edit_file", "glob", "grep", "todo", "wait"}
	for name, want := range map[string]string{"codebase_search": "grep", "grep_files": "grep", "read_lints": "read_file",
		"run_shell": "bash", "write_todo_list": "todo", "globs": "glob", "view_range": "read_file"} {
		if got := repair.Nearest(name, tools)[0]; got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestALister: a tool that lists a directory needs no path elsewhere, and read_file does.
func TestALister(t *testing.T) {
	for name, c := range map[string]struct{ tool, input, want string }{
		"none":          {"ls", `{}`, `{"path":"."}`},
		"a limit":       {"list_dir", `{"limit":10,"depth":2}`, `{"depth":2,"limit":10,"path":"."}`},
		"a path":        {"LS", `{"path":"/repo/src"}`, `{"path":"/repo/src"}`},
		"another name":  {"list_directory", `{"dir_path":"src"}`, `{"dir_path":"src"}`},
		"a pattern":     {"list_files", `{"ignore":["*.o"]}`, `{"ignore":["*.o"],"path":"."}`},
		"an empty path": {"ls", `{"path":""}`, `{"path":"."}`},
		"no lister":     {"Read", `{}`, `{}`},
	} {
		r := llm.Reply{Stop: llm.StopTools, Message: llm.Message{Parts: []llm.Part{
			llm.Call{ID: "1", Name: c.tool, Input: json.RawMessage(c.input)}}}}
		got := repair.Reply(r, nil, []string{"read_file", "bash"}).Message.Calls()[0]
		if got.Name != "read_file" || string(got.Input) != c.want {
			t.Errorf("%s: %s %s, want %s", name, got.Name, got.Input, c.want)
		}
	}
}
