package llmtest_test

import (
	"strings"
	"testing"

	"muster/llm/llmtest"
)

// What vendors refuse is found.
func TestCheckChat(t *testing.T) {
	for _, c := range []struct{ vendor, body, problem string }{
		{"", `{"model":"m","messages":[{"role":"user","content":"a"}]}`, ""},
		{"", `{"model":"m","messages":[{"role":"user","content":"a"}],"thinking":{}}`, `unknown field "thinking"`},
		{"openai", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":5}`, `unknown field "max_tokens"`},
		{"mistral", `{"model":"m","messages":[{"role":"user","content":"a"}],"stream_options":{}}`, `unknown field "stream_options"`},
		{"", `{"model":"m","messages":[{"role":"user","content":" "}]}`, "empty content"},
		{"", `{"model":"m","messages":[{"role":"user"}]}`, "missing field content"},
		{"", `{"model":"m","messages":[{"role":"assistant","content":"a"}]}`, "the last one is of assistant"},
		{"", `{"model":"m","messages":[` + called + `,{"role":"user","content":"a"}]}`, "no results for"},
		{"", `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"a"}]}`, "no call has the id"},
		{"deepseek", `{"model":"m","thinking":{},"messages":[` + called + result + `]}`, "missing reasoning_content"},
		{"qwen", `{"model":"m","messages":[` + called + result + `]}`, "content is null"},
		{"mistral", `{"model":"m","messages":[` + called + result + `]}`, `call "c"`},
		{"gemini", `{"model":"m","messages":[` + called + result + `]}`, "thought signature"},
		{"zai", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}]}`, "no images"},
		{"", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:x"}}]}]}`, "the image"},
	} {
		check(t, c.vendor+" "+c.body, llmtest.CheckChat(c.vendor, []byte(c.body)), c.problem)
	}
}

const (
	called = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`
	result = `,{"role":"tool","tool_call_id":"c","content":"a"}`
)

func TestCheckResponses(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`
	const output = `{"type":"function_call_output","call_id":"c","output":""}`
	const reasoning = `{"type":"reasoning","summary":[],"encrypted_content":"x"}`
	for _, c := range []struct{ input, problem string }{
		{reasoning + "," + call + "," + output, ""},
		{call, "no output for"},
		{output, "no call has the id"},
		{reasoning, "ends with reasoning"},
		{reasoning + `,{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, "required following item"},
		{`{"type":"reasoning","summary":[]},` + call + "," + output, "not stored"},
		{`{"type":"message","role":"user","content":[{"type":"output_text","text":"a"}]}`, `type "output_text"`},
		{`{"type":"function_call","call_id":"a b","name":"n","arguments":"{}"}`, `call "a b"`},
	} {
		body := `{"model":"m","store":false,"input":[` + c.input + `]}`
		check(t, body, llmtest.CheckResponses([]byte(body)), c.problem)
	}
}

// check compares what was found with the one problem that there is.
func check(t *testing.T, what string, got []string, problem string) {
	t.Helper()
	if found := strings.Join(got, "; "); found != problem && (problem == "" || !strings.Contains(found, problem)) {
		t.Errorf("%s: found %q, want %q", what, found, problem)
	}
}
