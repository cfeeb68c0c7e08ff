package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
)

func items(t testing.TB, is ...Step) json.RawMessage {
	t.Helper()
	if is == nil {
		is = []Step{}
	}
	return require.Value(json.Marshal(todoInput{Items: is}))(t)
}

func run(t testing.TB, tool llm.Tool, input string) llm.Result {
	t.Helper()
	r, err := tool.Run(t.Context(), llm.Call{ID: "c1", Name: tool.Spec().Name, Input: json.RawMessage(input)},
		func(string) {})
	require.NoError(t, err)
	return r
}

func TestTodoReplacesTheListAndShowsIt(t *testing.T) {
	todo := NewTodo(0, 3)
	for _, c := range []struct{ input, want string }{
		{`{"items":[{"id":"1","text":"read","status":"completed"},{"id":"2","text":"write","status":"in_progress"},` +
			`{"id":"3","text":"test","status":"pending"}]}`,
			"[x] 1 read\n[>] 2 write\n[ ] 3 test\n1 of 3 completed"},
		{`{"items":[{"text":"only this","status":"pending"}]}`, "[ ] 1 only this\n0 of 1 completed"},
		{`{"todos":[{"content":"as TodoWrite","status":"in_progress","activeForm":"Writing"}]}`, "[>] 1 as TodoWrite\n0 of 1 completed"},
		{`{"explanation":"why","plan":[{"step":"as update_plan","status":"completed"}]}`, "[x] 1 as update_plan\n1 of 1 completed"},
		{`{"items":[]}`, "The list is empty."},
	} {
		if r := run(t, todo.Tool(), c.input); r.IsError || r.Text() != c.want {
			t.Errorf("%s: %v %q", c.input, r.IsError, r.Text())
		}
	}
}

func TestTodoRefusesAndKeepsWhatItHas(t *testing.T) {
	todo := NewTodo(0, 3)
	run(t, todo.Tool(), `{"items":[{"id":"1","text":"read","status":"pending"}]}`)
	var many []Step
	for i := range defaultItems + 1 {
		many = append(many, Step{fmt.Sprint(i), pending})
	}
	for input, want := range map[string]string{
		string(items(t, many...)): "has 21 items and may have 20",
		`{"items":[{"id":"1","text":"a","status":"in_progress"},{"id":"2","text":"b",` +
			`"status":"in_progress"}]}`: "2 items are in_progress (1, 2): do one at a time",
		`{"items":[{"id":"1","text":" ",` +
			`"status":"pending"}]}`: "item 1 has no text",
		`{"items":[{"id":"1","text":"a",` +
			`"status":"later"}]}`: "in_progress",
		`{}`: "items",
	} {
		if r := run(t, todo.Tool(), input); !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %v %q, want %q", input, r.IsError, r.Text(), want)
		}
	}
	if got := todo.text(); got != "[ ] 1 read\n0 of 1 completed" {
		t.Errorf("the list became %q", got)
	}
}

func TestReminderOnlyAfterSilentRoundsOfAnOpenList(t *testing.T) {
	open := `{"items":[{"id":"1","text":"a","status":"completed"},{"id":"2","text":"b","status":"pending"}]}`
	done := `{"items":[{"id":"1","text":"a","status":"completed"}]}`
	todo := NewTodo(0, 3)
	rounds := func(input string, used ...bool) (due []bool) {
		if input != "" {
			run(t, todo.Tool(), input)
		}
		for _, u := range used {
			text, d := todo.Round(u)
			if d != (text != "") || d && !strings.Contains(text, "open items (1)") {
				t.Errorf("reminder %q, due %v", text, d)
			}
			due = append(due, d)
		}
		return due
	}
	for _, c := range []struct {
		input      string
		used, want []bool
	}{
		{"", []bool{false, false, false, false}, []bool{false, false, false, false}},
		{open, []bool{true, false, false, false, false, false, false},
			[]bool{false, false, false, true, false, false, true}},
		{open, []bool{true, false, false, true, false, false, false},
			[]bool{false, false, false, false, false, false, true}},
		{done, []bool{true, false, false, false, false}, []bool{false, false, false, false, false}},
	} {
		if d := cmp.Diff(c.want, rounds(c.input, c.used...)); d != "" {
			t.Errorf("%s: %s", c.input, d)
		}
	}
}

func round(name string, input json.RawMessage, failed bool) []llm.Message {
	return []llm.Message{
		{Role: llm.Assistant, Parts: []llm.Part{llm.Call{ID: "x", Name: name, Input: input}}},
		{Role: llm.User, Parts: []llm.Part{llm.Result{ID: "x", IsError: failed,
			Parts: []llm.Part{llm.Text{Text: "r"}}}}},
	}
}

// A list that was not answered, and what was on the list before, are not restored. Refused lists and reminders are in
// TestRestoredIsAsLived.
func TestRestore(t *testing.T) {
	one, two := items(t, Step{"a", pending}), items(t, Step{"b", pending})
	for name, c := range map[string]struct {
		state    string
		messages []llm.Message
		want     string
	}{
		"nothing":            {"", nil, "The list is empty."},
		"of a summary":       {`[{"id":"3","text":"c","status":"pending"}]`, nil, "[ ] 1 c\n0 of 1 completed"},
		"of another version": {`[{"id":"3","state":"done"}]`, nil, "The list is empty."},
		"unanswered": {"", append(round("todo", one, false), round("todo", two, false)[:1]...),
			"[ ] 1 a\n0 of 1 completed"},
	} {
		todo := NewTodo(0, 3)
		run(t, todo.Tool(), `{"items":[{"id":"9","text":"of before","status":"pending"}]}`)
		if todo.Restore(json.RawMessage(c.state), c.messages); todo.text() != c.want {
			t.Errorf("%s: %q, want %q", name, todo.text(), c.want)
		}
	}
}

// A member that is killed and resumed has the same list and is reminded at the same time.
func TestRestoredIsAsLived(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lived := NewTodo(0, 3)
		var messages []llm.Message
		for range rapid.IntRange(0, 12).Draw(rt, "rounds") {
			var is []Step
			for i := range rapid.IntRange(0, 3).Draw(rt, "items") {
				is = append(is, Step{fmt.Sprint(i),
					rapid.SampledFrom([]string{pending, inProgress, completed}).Draw(rt, "status")})
			}
			name, failed := "bash", false
			if rapid.Bool().Draw(rt, "todo") {
				name = todoName
				failed = run(t, lived.Tool(), string(items(t, is...))).IsError
			}
			lived.Round(name == todoName)
			messages = append(messages, round(name, items(t, is...), failed)...)
		}
		restored := NewTodo(0, 3)
		restored.Restore(nil, messages)
		if restored.text() != lived.text() || restored.silent != lived.silent {
			rt.Errorf("restored %q, %d, lived %q, %d", restored.text(), restored.silent, lived.text(), lived.silent)
		}
	})
}

// The limits are those that were asked for. A list of before is restored though it has more items than it may now.
func TestLimitsOfATodoList(t *testing.T) {
	five := items(t, Step{"a", pending}, Step{"b", pending}, Step{"c", pending}, Step{"d", pending},
		Step{"e", pending})
	small := NewTodo(4, -1)
	if r := run(t, small.Tool(), string(five)); !r.IsError || !strings.Contains(r.Text(), "has 5 items and may have 4") {
		t.Errorf("%q", r.Text())
	}
	small.Restore(nil, round("todo", five, false))
	if !strings.HasSuffix(small.Text(), "0 of 5 completed") {
		t.Errorf("restored: %q", small.Text())
	}
	for n := range 100 {
		if _, due := small.Round(false); due {
			t.Fatalf("reminded after %d rounds, of a list without reminders", n+1)
		}
	}
	plain := NewTodo(0, 0)
	run(t, plain.Tool(), string(five))
	for n := 1; n <= 10; n++ {
		if text, due := plain.Round(false); due != (n == 10) || due && !strings.Contains(text, "for 10 rounds") {
			t.Errorf("round %d: %q, %v", n, text, due)
		}
	}
}
