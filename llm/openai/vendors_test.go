package openai_test

import (
	gocmp "cmp"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

// callsThen returns a reply of Chat Completions with these deltas and then a call.
func callsThen(extra string, deltas ...string) string {
	var events []string
	for _, d := range append(deltas, `{"tool_calls":[{"index":0,"id":"call_long_id","type":"function",`+extra+
		`"function":{"name":"look","arguments":"{}"}}]}`) {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":%s}]}`, d))
	}
	return wiretest.Events(append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)...)
}

// Reasoning comes in the form of each server, is shown, and goes back as the server wants it.
func TestReasoningOfVendors(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		deltas          []string
		extra           string // in the call
		think, text     string // of the reply
		back            string // the assistant's message in the next request, without its calls
		call            string // what of the call goes back beside the function
		asked           string // fields of each request that ask for thinking
	}{
		{provider: "deepseek", model: "deepseek-v4-pro", deltas: []string{`{"reasoning_content":"hm"}`, `{"content":"So."}`},
			think: "hm", text: "So.", back: `{"role":"assistant","content":"So.","reasoning_content":"hm"}`,
			asked: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`},
		{provider: "deepseek", model: "deepseek-v4-pro", back: `{"role":"assistant","content":null,"reasoning_content":" "}`,
			asked: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`},
		{provider: "moonshot", model: "kimi-k2.6", deltas: []string{`{"reasoning_content":"h"}`, `{"reasoning_content":"m","content":null}`},
			think: "hm", back: `{"role":"assistant","content":null,"reasoning_content":"hm"}`, asked: `{"thinking":{"type":"enabled"}}`},
		{provider: "moonshot", model: "kimi-k2.7-code", deltas: []string{`{"reasoning_content":"hm"}`},
			think: "hm", back: `{"role":"assistant","content":null,"reasoning_content":"hm"}`, asked: `{}`},
		{provider: "zai", model: "glm-5.2", deltas: []string{`{"reasoning_content":"hm"}`},
			think: "hm", back: `{"role":"assistant","content":null,"reasoning_content":"hm"}`,
			asked: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`},
		{provider: "openrouter", model: "anthropic/claude-opus-5", deltas: []string{
			`{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"x"}]}`,
			`{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0}]}`},
			think: "hm", back: `{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"sig","index":0,"format":"x"}]}`,
			asked: `{"reasoning":{"effort":"medium"}}`},
		{provider: "minimax", model: "MiniMax-M3", deltas: []string{
			`{"reasoning_details":[{"type":"reasoning.text","text":"a long thought in pieces"}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"a long thought in pieces that repeat"}]}`},
			think: "a long thought in pieces that repeat",
			back:  `{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"a long thought in pieces that repeat"}]}`,
			asked: `{"reasoning_split":true}`},
		{provider: "minimax", model: "MiniMax-M3", deltas: []string{`{"content":"<th"}`, `{"content":"ink>hm</thi"}`, `{"content":"nk>So."}`},
			think: "hm", text: "So.", back: `{"role":"assistant","content":"<think>\nhm\n</think>\n\nSo."}`, asked: `{"reasoning_split":true}`},
		{deltas: []string{`{"content":"<think>\nhm</think>\n\nSo."}`}, think: "\nhm", text: "So.",
			back: `{"role":"assistant","content":"So."}`, asked: `{}`},
		{deltas: []string{`{"content":"<thin"}`, `{"content":" air>"}`}, text: "<thin air>",
			back: `{"role":"assistant","content":"<thin air>"}`, asked: `{}`},
		{deltas: []string{`{"content":"Say <think> here"}`}, text: "Say <think> here",
			back: `{"role":"assistant","content":"Say <think> here"}`, asked: `{}`},
		{deltas: []string{`{"reasoning":"hm"}`}, think: "hm", back: `{"role":"assistant","content":null,"reasoning":"hm"}`, asked: `{}`},
		{provider: "gemini", model: "gemini-4-argon", extra: `"extra_content":{"google":{"thought_signature":"sig"}},`,
			back: `{"role":"assistant","content":null}`, call: `{"google":{"thought_signature":"sig"}}`, asked: `{"reasoning_effort":"medium"}`},
		{provider: "gemini", model: "gemini-4-argon", back: `{"role":"assistant","content":null}`,
			call: `{"google":{"thought_signature":"skip_thought_signature_validator"}}`, asked: `{"reasoning_effort":"medium"}`},
		{provider: "mistral", model: "mistral-medium-2604", deltas: []string{
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `{"content":[{"type":"text","text":"So."}]}`},
			think: "hm", text: "So.",
			back:  `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"So."}]}`,
			asked: `{"reasoning_effort":"high"}`},
		{provider: "qwen", model: "qwen3.7-max", deltas: []string{`{"reasoning_content":"hm"}`}, think: "hm",
			back: `{"role":"assistant","content":"","reasoning_content":"hm"}`, asked: `{"enable_thinking":true}`},
		{provider: "xai", model: "grok-4.7", back: `{"role":"assistant","content":""}`, asked: `{"reasoning_effort":"medium"}`},
	} {
		name := fmt.Sprint(c.provider, "/", c.model, " ", c.deltas)
		v := serve(wiretest.Stream(callsThen(c.extra, c.deltas...)))
		known, _ := catalogue.Lookup(c.provider, c.model)
		m := v.model(openai.Options{Model: c.model, Known: known})
		r, deltas, err := wiretest.Ask(t, m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, think := shown(deltas); text != c.text || think != c.think || r.Message.Text() != c.text {
			t.Errorf("%s: shown %q and %q", name, think, text)
		}
		calls := r.Message.Calls()
		result := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{ID: calls[0].ID}, llm.Text{Text: "mail"}}}
		// As it would be after a restart.
		stored, _ := json.Marshal(r.Message)
		r.Message = llm.Message{}
		require.NoError(t, json.Unmarshal(stored, &r.Message))
		if _, _, err := wiretest.Ask(t, m, wiretest.User("hello"), r.Message, result); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var q struct{ Messages []map[string]any }
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(v.Sent()), &q); err != nil || json.Unmarshal([]byte(v.Sent()), &fields) != nil {
			t.Fatal(err)
		}
		said, call := q.Messages[1], q.Messages[1]["tool_calls"].([]any)[0].(map[string]any)
		delete(said, "tool_calls")
		extra, _ := json.Marshal(call["extra_content"])
		for _, f := range []string{"messages", "model", "max_tokens", "max_completion_tokens", "stream", "stream_options"} {
			delete(fields, f)
		}
		for what, pair := range map[string][2]string{"sent back": {c.back, text(said)}, "asked": {c.asked, text(fields)},
			"with the call": {gocmp.Or(c.call, "null"), string(extra)}} {
			if d := cmp.Diff(decoded(t, pair[0]), decoded(t, pair[1])); d != "" {
				t.Errorf("%s: %s: %s", name, what, d)
			}
		}
		if q.Messages[2]["content"] == "" || q.Messages[2]["tool_call_id"] != call["id"] {
			t.Errorf("%s: the result is %v of %v", name, q.Messages[2], call["id"])
		}
		if id := call["id"].(string); c.provider == "mistral" && (len(id) != 9 || q.Messages[3]["role"] != "assistant") {
			t.Errorf("%s: id %q, then %v", name, id, q.Messages[3])
		}
	}
}

func text(v any) string { b, _ := json.Marshal(v); return string(b) }

func decoded(t *testing.T, s string) (v any) {
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}
