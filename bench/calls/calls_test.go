// Package calls measures what becomes of calls that are slightly wrong: `go -C bench test -v ./calls` prints how many are
// done at once, how many after one further generation, and how many were done wrongly, which must be none.
//
// testdata/calls.json has cases made from the wire formats and the habits of models, and testdata/seen.json has shapes
// that people reported, each with the thread. A stand-in for a model's server sends a case over a real connection, and
// then, if it was refused, the call as it should be. The tools record what reaches them.
package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/llm"
	"muster/llm/openai"
	"muster/loop"
	"muster/tool"
)

// sent is a call as it is on the wire, or as it reached a tool: its arguments are JSON, or meant to be.
type sent struct{ Name, Args string }

// replyCase is a reply of a model. Without Want none of its calls may run.
type replyCase struct {
	Name   string
	Seen   string // the repository and the number of the thread that reports it
	Text   string
	Calls  []sent
	Finish string
	Want   []sent
}

// recorder notes the calls that reach a tool.
type recorder struct{ ran []sent }

// record returns a tool that only notes what it is given.
func record[In any](r *recorder, name string, o ...tool.Option) llm.Tool {
	return tool.Func(name, "", func(_ context.Context, in In) (string, error) {
		data, err := json.Marshal(in)
		r.ran = append(r.ran, sent{name, string(data)})
		return "done", err
	}, o...)
}

// tools returns the tools of the cases. TestTheToolsAreReal holds that they take what the program's tools take.
func (r *recorder) tools() []llm.Tool {
	type bash struct {
		Command    string `json:"command"`
		Timeout    int    `json:"timeout,omitempty"`
		Background bool   `json:"background,omitempty"`
		Workdir    string `json:"workdir,omitempty"`
	}
	type read struct {
		Path   string `json:"path"`
		Offset int    `json:"offset,omitempty"`
		Limit  int    `json:"limit,omitempty"`
	}
	type write struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	type edit struct {
		Path       string `json:"path"`
		OldText    string `json:"old_text,omitempty"`
		NewText    string `json:"new_text,omitempty"`
		ReplaceAll bool   `json:"replace_all,omitempty"`
		Edits      []any  `json:"edits,omitempty"`
	}
	type grep struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path,omitempty"`
		Glob       string `json:"glob,omitempty"`
		Type       string `json:"type,omitempty"`
		OutputMode string `json:"output_mode,omitempty"`
		Before     int    `json:"-B,omitempty"`
		After      int    `json:"-A,omitempty"`
		Context    int    `json:"-C,omitempty"`
		AnyCase    bool   `json:"-i,omitempty"`
		Multiline  bool   `json:"multiline,omitempty"`
		Literal    bool   `json:"literal,omitempty"`
		HeadLimit  int    `json:"head_limit,omitempty"`
		Offset     int    `json:"offset,omitempty"`
	}
	type create struct {
		Subject     string   `json:"subject"`
		Description string   `json:"description,omitempty"`
		BlockedBy   []any    `json:"blocked_by,omitempty"`
		ClaimRole   string   `json:"claim_role,omitempty"`
		Priority    int      `json:"priority,omitempty"`
		RequirePlan bool     `json:"require_plan,omitempty"`
		Review      bool     `json:"review,omitempty"`
		Files       []string `json:"files,omitempty"`
		Claim       bool     `json:"claim,omitempty"`
	}
	type list struct {
		Status string `json:"status,omitempty"`
		Owner  string `json:"owner,omitempty"`
		TaskID int    `json:"task_id,omitempty"`
	}
	type complete struct {
		TaskID  int    `json:"task_id,omitempty"`
		Summary string `json:"summary"`
	}
	type send struct {
		To      muster.Name `json:"to"`
		Content string      `json:"content"`
	}
	type spawn struct {
		Name        muster.Name `json:"name"`
		Role        string      `json:"role"`
		Prompt      string      `json:"prompt"`
		Model       string      `json:"model,omitempty"`
		RequirePlan bool        `json:"require_plan,omitempty"`
	}
	type item struct {
		ID     string `json:"id"`
		Text   string `json:"text"`
		Status string `json:"status"`
	}
	type todo struct {
		Items []item `json:"items"`
	}
	return []llm.Tool{record[bash](r, "bash"), record[read](r, "read_file", tool.ReadOnly()),
		record[write](r, "write_file"), record[edit](r, "edit_file"), record[grep](r, "grep", tool.ReadOnly()),
		record[create](r, "task_create"), record[list](r, "task_list", tool.ReadOnly()),
		record[complete](r, "complete_task"), record[send](r, "send_message"), record[spawn](r, "spawn_teammate"),
		record[struct{}](r, "list_teammates", tool.ReadOnly()),
		record[todo](r, "todo", tool.Enum("items.status", "pending", "in_progress", "completed"))}
}

// chatReply is a reply of Chat Completions that does not come as a stream.
func chatReply(text, finish string, calls []sent) string {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var all []call
	for i, c := range calls {
		all = append(all, call{fmt.Sprintf("c%d", i), "function", function{c.Name, c.Args}})
	}
	if finish == "" {
		finish = "stop"
	}
	data, _ := json.Marshal(map[string]any{"model": "m", "choices": []any{map[string]any{"finish_reason": finish,
		"message": map[string]any{"role": "assistant", "content": text, "tool_calls": all}}}})
	return string(data)
}

// play lets the model say the case, and returns what ran in its first reply and in all.
func play(t *testing.T, c replyCase) (atOnce, all []sent) {
	var r recorder
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		reply := chatReply("I am done.", "", nil)
		switch {
		case asked == 1:
			reply = chatReply(c.Text, c.Finish, c.Calls)
		case asked == 2:
			if atOnce = r.ran; len(r.ran) == 0 && len(c.Want) > 0 {
				reply = chatReply("", "", c.Want)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, reply)
	}))
	defer s.Close()
	talk := loop.NewMemory(llm.Request{})
	talk.Say(llm.Text{Text: "go"})
	a := loop.Agent{Model: openai.New(openai.Options{Model: "m", BaseURL: s.URL}), Conversation: talk, Tools: r.tools()}
	if _, err := a.Run(t.Context()); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
	return atOnce, r.ran
}

// equal reports whether the calls are the same.
func equal(t *testing.T, got, want []sent) bool {
	decode := func(calls []sent) (all []any) {
		for _, c := range calls {
			var v any
			require.NoError(t, json.Unmarshal([]byte(c.Args), &v))
			all = append(all, c.Name, v)
		}
		return all
	}
	return reflect.DeepEqual(decode(got), decode(want))
}

// read returns the cases of a file. Their names differ.
func read(t *testing.T, file string) (cases []replyCase) {
	data := require.Value(os.ReadFile("testdata/" + file))(t)
	require.NoError(t, json.Unmarshal(data, &cases))
	return cases
}

func TestCalls(t *testing.T) {
	cases := append(read(t, "calls.json"), read(t, "seen.json")...)
	var recoverable, atOnce, later, refused, undone, wrong int
	for _, c := range cases {
		first, all := play(t, c)
		if len(c.Want) > 0 {
			recoverable++
		}
		switch {
		case !equal(t, all, c.Want) && len(all) == 0:
			undone++
			t.Errorf("%s: nothing ran, want %q", c.Name, c.Want)
		case !equal(t, all, c.Want):
			wrong++
			t.Errorf("%s: ran %q, want %q", c.Name, all, c.Want)
		case len(c.Want) == 0:
			refused++
		case len(first) > 0:
			atOnce++
		default:
			later++
			t.Logf("%s: one further generation", c.Name)
		}
	}
	t.Logf("%d recoverable calls: %d at once, %d with one further generation, %d undone; %d refused; %d wrong",
		recoverable, atOnce, later, undone, refused, wrong)
	if atOnce*100 < recoverable*80 {
		t.Errorf("%d of %d calls are done at once, and 80%% must be", atOnce, recoverable)
	}
}

// The tools of the cases take what the program's own tools take.
func TestTheToolsAreReal(t *testing.T) {
	real := map[string]any{}
	all := append(code.Tools(nil, nil, nil, code.Options{}), teamtools.ForLead(nil, teamtools.Services{})...)
	for _, tool := range append(all, agent.NewTodo(0, 0).Tool()) {
		real[tool.Spec().Name] = fields(t, tool)
	}
	for _, tool := range new(recorder).tools() {
		if name := tool.Spec().Name; !reflect.DeepEqual(fields(t, tool), real[name]) {
			t.Errorf("%s takes %v, and the program's %v", name, fields(t, tool), real[name])
		}
	}
}

// fields returns the types of a tool's fields.
func fields(t *testing.T, of llm.Tool) map[string]any {
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	require.NoError(t, json.Unmarshal(of.Spec().Schema, &s))
	out := map[string]any{"required": fmt.Sprint(s.Required)}
	for name, p := range s.Properties {
		out[name] = p.Type
	}
	return out
}
