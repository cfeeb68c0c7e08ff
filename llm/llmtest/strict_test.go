package llmtest_test

import (
	"net/http"
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
	header := http.Header{"Authorization": {"Bearer one"}}
	reasoning := func(header http.Header, model string) string {
		return `{"type":"reasoning","summary":[],"encrypted_content":"` + llmtest.SealReasoning(header, model) + `"}`
	}
	mine := reasoning(header, "m")
	for _, c := range []struct{ input, problem string }{
		{mine + "," + call + "," + output, ""},
		{reasoning(header, "n") + "," + call + "," + output, "could not be verified"},
		{reasoning(http.Header{}, "m") + "," + call + "," + output, "could not be verified"},
		{call, "no output for"},
		{output, "no call has the id"},
		{mine, "ends with reasoning"},
		{mine + `,{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, "required following item"},
		{`{"type":"reasoning","summary":[]},` + call + "," + output, "not stored"},
		{`{"type":"message","role":"user","content":[{"type":"output_text","text":"a"}]}`, `type "output_text"`},
		{`{"type":"function_call","call_id":"a b","name":"n","arguments":"{}"}`, `call "a b"`},
	} {
		body := `{"model":"m","store":false,"input":[` + c.input + `]}`
		check(t, body, llmtest.CheckResponses(header, []byte(body)), c.problem)
	}
}

// The rules of the Messages API, each broken by a request that is otherwise right.
func TestCheckMessages(t *testing.T) {
	const use = `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`
	const results = `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`
	header := http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"one"}}
	first := `{"role":"user","content":"a"}`
	body := func(model, settings, messages string) string {
		return `{"model":"` + model + `","max_tokens":2000` + settings + `,"messages":[` + messages + `]}`
	}
	// What claude-opus-5-5 and claude-haiku-4-5 have thought in answer to the first message.
	thought := func(model, text string) string {
		signature := llmtest.NewSealer(header, []byte(body(model, "", first))).Seal(text)
		return `,{"role":"assistant","content":[{"type":"thinking","thinking":"` + text + `","signature":"` + signature +
			`"},{"type":"text","text":"b"}]},` + first
	}
	for _, c := range []struct{ model, settings, messages, problem string }{
		{"m", "", first, ""},
		{"m", "", first + use + results, ""},
		{"m", `,"n":1`, first, `unknown field "n"`},
		{"m", "", `{"role":"user","content":""}`, "non-empty content"},
		{"m", "", `{"role":"user","content":[{"type":"text","text":" "}]}`, "non-whitespace"},
		{"m", "", `{"role":"user","content":[{"type":"text","text":"a","name":"b"}]}`, `unknown field "name"`},
		{"m", "", strings.TrimPrefix(use, ",") + results, "first message"},
		{"m", "", first + use + "," + first, "without `tool_result` blocks immediately after"},
		{"m", "", first + use, "without `tool_result` blocks"},
		{"m", "", first + results, "unexpected `tool_use_id`"},
		{"m", "", first + use + results + use + results, "must be unique"},
		{"m", "", first + use + `,{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"c"}]}`,
			"immediately after"},
		{"m", "", first + strings.Replace(use, `{}`, `[]`, 1) + results, "valid dictionary"},
		{"m", "", first + strings.Replace(use, `"n"`, `"n m"`, 1) + results, `the name "n m"`},
		{"m", "", first + use + strings.Replace(results, `"c"`, `"c","is_error":true`, 1), "cannot be empty if `is_error`"},
		{"m", "", first + use + strings.Replace(results, `"c"`, `"c","is_error":true,"content":[`+picture("png", "iVBORw0KGgo=")+`]`, 1),
			"all content must be type `text`"},
		{"m", "", `{"role":"user","content":[` + picture("png", "iVBORw0KGgo=") + `]}`, ""},
		{"m", "", `{"role":"user","content":[` + picture("jpeg", "iVBORw0KGgo=") + `]}`, "does not match the provided media type"},
		{"m", "", `{"role":"user","content":[` + picture("bmp", "Qk0=") + `]}`, "media_type: image/bmp"},
		{"m", "", first + `,{"role":"assistant","content":"b "}`, "trailing whitespace"},
		{"claude-opus-5", "", first + `,{"role":"assistant","content":"b"}`, "does not support assistant message prefill"},
		{"claude-opus-5", `,"max_tokens":200000`, first, "maximum allowed number of output tokens"},
		{"claude-opus-5", `,"temperature":0.5`, first, "`temperature`"},
		{"claude-opus-5", `,"thinking":{"type":"enabled","budget_tokens":1024}`, first, `"thinking.type.enabled" is not supported`},
		{"claude-opus-5-5", `,"thinking":{"type":"disabled"}`, first, `"thinking.type.disabled" is not supported`},
		{"claude-opus-5-5", `,"output_config":{"effort":"minimal"}`, first, `output_config.effort: "minimal"`},
		{"claude-haiku-4-5", `,"thinking":{"type":"adaptive"}`, first, `"thinking.type.adaptive" is not supported`},
		{"claude-haiku-4-5", `,"output_config":{"effort":"low"}`, first, `output_config.effort: "low"`},
		{"claude-haiku-4-5", `,"thinking":{"type":"enabled","budget_tokens":1000}`, first, "greater than or equal to 1024"},
		{"claude-haiku-4-5", `,"thinking":{"type":"enabled","budget_tokens":2000}`, first, "`max_tokens` must be greater"},
		{"claude-haiku-4-5", `,"thinking":{"type":"enabled","budget_tokens":1024}`, first, ""},
		{"claude-haiku-4-5", `,"thinking":{"type":"enabled","budget_tokens":1024}`, first + use + results, "must start with a thinking block"},
		{"claude-haiku-4-5", `,"thinking":{"type":"enabled","budget_tokens":1024}`, first + use + results + "," + first, ""},
		{"claude-haiku-4-5", "", first + thought("claude-haiku-4-5", "hm"), ""},
		{"claude-haiku-4-5", "", first + strings.Replace(thought("claude-haiku-4-5", "hm"), "hm", "ha", 1), "Invalid `signature`"},
		{"claude-haiku-4-5", "", first + thought("claude-opus-5-5", "hm"), "claude-haiku-4-5 reads thinking of claude-opus-5-5"},
		{"claude-opus-5-5", "", first + thought("claude-opus-5-5", "hm"), ""},
		{"claude-opus-5-5", `,"system":"b"`, first + thought("claude-opus-5-5", "hm"), "bound to a different conversation"},
		{"claude-haiku-4-5", `,"system":"b"`, first + thought("claude-haiku-4-5", "hm"), ""},
		{"m", `,"tools":[{"name":"a.b","input_schema":{"type":"object"}}]`, first, `"a.b"`},
		{"m", `,"tools":[{"name":"a","input_schema":{"type":"object","oneOf":[]}}]`, first, "oneOf at the top level"},
		{"m", `,"tools":[{"name":"a","input_schema":{"type":"object","properties":{"a b":{}}}}]`, first, `the key "a b"`},
		{"m", `,"system":[` + strings.Repeat(marked+",", 4) + marked + `]`, first, "A maximum of 4 blocks"},
		{"m", `,"system":[` + marked + "," + lasting + `]`, first, "must not come after a ttl='5m' one"},
		{"m", `,"tools":[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"system":[` +
			lasting + `]`, first, "must not come after a ttl='5m' one"},
		{"m", `,"system":[` + lasting + "," + marked + `]`, first, ""},
		{"m", "", `{"role":"user","content":[` + strings.Replace(marked, `"a"`, `" "`, 1) + `]}`, "cannot be set for empty text"},
		{"claude-haiku-4-5", "", first + strings.Replace(thought("claude-haiku-4-5", "hm"), `"type":"thinking"`,
			`"type":"thinking","cache_control":{"type":"ephemeral"}`, 1), "Extra inputs are not permitted"},
	} {
		check(t, c.model+c.settings+c.messages, llmtest.CheckMessages(header, []byte(body(c.model, c.settings, c.messages))), c.problem)
	}
	other := http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"two"}, "Anthropic-Beta": {"magic"}}
	check(t, "another account", llmtest.CheckMessages(other, []byte(body("claude-sonnet-5-5", "", first+thought("claude-sonnet-5-5", "hm")))),
		"thinking of another account")
	check(t, "a beta", llmtest.CheckMessages(other, []byte(body("m", "", first))), "`magic`")
}

// marked is a text with a mark for the cache.
const marked = `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`

// lasting is marked, for an hour.
const lasting = `{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}`

// picture is a block with an image.
func picture(kind, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"image/` + kind + `","data":"` + data + `"}}`
}

// check compares what was found with the one problem that there is.
func check(t *testing.T, what string, got []string, problem string) {
	t.Helper()
	if found := strings.Join(got, "; "); found != problem && (problem == "" || !strings.Contains(found, problem)) {
		t.Errorf("%s: found %q, want %q", what, found, problem)
	}
}
