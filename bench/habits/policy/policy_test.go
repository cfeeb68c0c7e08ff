package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
)

// talk plays a habit against answers by the tool that is called, one for each call in turn; the last stays. It returns
// the calls, and the words at the end. reminders are what is said after the words.
func talk(t *testing.T, h Habit, tools []llm.Spec, answers map[string][]string, reminders ...string) (said []string, m *Model) {
	t.Helper()
	m = New(h)
	req := llm.Request{Tools: tools, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "go"}}}}}
	for range 20 {
		r := require.Value(m.Reply(t.Context(), req, nil))(t)
		req.Messages = append(req.Messages, r.Message)
		calls := r.Message.Calls()
		if len(calls) == 0 {
			said = append(said, r.Message.Text())
			if len(reminders) == 0 {
				return said, m
			}
			req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: reminders[0]}}})
			reminders = reminders[1:]
			continue
		}
		var results []llm.Part
		for _, c := range calls {
			said = append(said, c.Name+" "+string(c.Input))
			text := "fine"
			if list := answers[c.Name]; len(list) > 0 {
				text, answers[c.Name] = list[0], list[1:]
			}
			result := llm.Result{ID: c.ID, Parts: []llm.Part{llm.Text{Text: text}}, IsError: text != "fine"}
			results = append(results, result)
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: results})
	}
	t.Fatalf("it does not end: %q", said)
	return nil, nil
}

func TestRules(t *testing.T) {
	tools := []llm.Spec{{Name: "grep"}, {Name: "bash", Schema: json.RawMessage(`{"properties":{"timeout":{},"command":{}}}`)},
		{Name: "complete_task", Schema: json.RawMessage(`{"required":["summary"]}`)}}
	edit := Call{Tool: "edit", Input: input{"path": "a"}, Other: &Call{Tool: "edit", Input: input{"path": "b"}}}
	read := func(path string) Call { return Call{Tool: "read", Input: input{"file": path}} }
	for name, c := range map[string]struct {
		steps     [][]Call
		answers   map[string][]string
		reminders []string
		want      []string
		refused   int
	}{
		"all is fine": {steps: [][]Call{{edit, read("x")}, {edit}}, want: []string{`edit {"path":"a"}`, `read {"file":"x"}`,
			`edit {"path":"a"}`, "The end."}},
		"another field": {steps: [][]Call{{{Tool: "bash", Input: input{"timeout_ms": 5}}}}, refused: 1,
			answers: map[string][]string{"bash": {`there is no field "timeout_ms" (did you mean "timeout"?). Fields: command`}},
			want:    []string{`bash {"timeout_ms":5}`, `bash {"timeout":5}`, "The end."}},
		"another tool": {steps: [][]Call{{{Tool: "search", Input: input{"q": 1}}}}, refused: 1,
			answers: map[string][]string{"search": {`There is no tool "search". There are: grep, bash.`}},
			want:    []string{`search {"q":1}`, `grep {"q":1}`, "The end."}},
		"another tool, without end": {steps: [][]Call{{{Tool: "search", Input: input{"q": 1}}}}, refused: 3,
			answers: map[string][]string{"search": {"There are: grep."}, "grep": slices.Repeat([]string{"There are: grep."}, 9)},
			want:    []string{`search {"q":1}`, `grep {"q":1}`, `grep {"q":1}`, "The end."}},
		"read first": {steps: [][]Call{{edit}}, answers: map[string][]string{"edit": {"Read the file first."}}, refused: 1,
			want: []string{`edit {"path":"a"}`, `read {"file":"a"}`, `edit {"path":"a"}`, "The end."}},
		"another form": {steps: [][]Call{{edit}}, answers: map[string][]string{"edit": {"no", "no"}}, refused: 2,
			want: []string{`edit {"path":"a"}`, `edit {"path":"b"}`, "The end."}},
		"the same is not tried for ever": {steps: [][]Call{{edit}, {read("x")}}, refused: 2,
			answers: map[string][]string{"edit": slices.Repeat([]string{"Read it first."}, 9)},
			want: []string{`edit {"path":"a"}`, `read {"file":"a"}`, `edit {"path":"a"}`, `read {"file":"x"}`,
				"The end."}},
		"a command that failed": {steps: [][]Call{{edit}}, answers: map[string][]string{"edit": {"red\n[exit 1]"}},
			want: []string{`edit {"path":"a"}`, "The end."}},
		"a reminder": {reminders: []string{"It is yours. Call complete_task, or bash.", "Well done."},
			want: []string{"The end.", `complete_task {"summary":"The end."}`, "The end.", "The end."}},
	} {
		t.Run(name, func(t *testing.T) {
			got, m := talk(t, Habit{Steps: c.steps, Words: "The end.", Read: read}, tools, c.answers, c.reminders...)
			if !slices.Equal(got, c.want) || len(m.Refused) != c.refused {
				t.Errorf("%s\nrefused %d, want %s\nand %d", strings.Join(got, "\n"), len(m.Refused), strings.Join(c.want, "\n"), c.refused)
			}
		})
	}
}
