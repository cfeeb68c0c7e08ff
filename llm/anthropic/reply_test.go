package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/internal/wiretest"
)

var usage = llm.Usage{Input: 10, Output: 25, CacheRead: 300, CacheWrite: 40}

func input(s string) json.RawMessage { return json.RawMessage(s) }

func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		stop  llm.Stop
		parts []llm.Part
	}{
		"text": {
			turn("end_turn", text(0, "Hel", "lo, ", "wörld")),
			llm.StopEnd, []llm.Part{llm.Text{Text: "Hello, wörld"}},
		},
		"stop sequence": {turn("stop_sequence", text(0, "x")), llm.StopEnd, []llm.Part{llm.Text{Text: "x"}}},
		"parallel calls": {
			turn("tool_use", text(0, "I look."), call(1, "t1", "read", `{"pa`, `th": "a"}`), call(2, "t2", "list"),
				call(3, "t3", "read", `{"path":"<b>"}`)),
			llm.StopTools, []llm.Part{
				llm.Text{Text: "I look."},
				llm.Call{ID: "t1", Name: "read", Input: input(`{"path":"a"}`)},
				llm.Call{ID: "t2", Name: "list", Input: input(`{}`)},
				llm.Call{ID: "t3", Name: "read", Input: input(`{"path":"\u003cb\u003e"}`)},
			},
		},
		"calls that say end_turn": {
			turn("end_turn", call(0, "t1", "list")), llm.StopTools,
			[]llm.Part{llm.Call{ID: "t1", Name: "list", Input: input(`{}`)}},
		},
		"ids that are missing or repeated": {
			turn("tool_use", call(0, "", "a"), call(1, "x", "b"), call(2, "x", "c")), llm.StopTools, []llm.Part{
				llm.Call{ID: "call_1_1", Name: "a", Input: input(`{}`)},
				llm.Call{ID: "x", Name: "b", Input: input(`{}`)},
				llm.Call{ID: "call_1_3", Name: "c", Input: input(`{}`)},
			},
		},
		"input in the start of the block": {
			turn("tool_use",
				[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1}}}`, `{"type":"content_block_stop","index":0}`}),
			llm.StopTools, []llm.Part{llm.Call{ID: "t", Name: "n", Input: input(`{"a":1}`)}},
		},
		"cut by max_tokens": {
			turn("max_tokens", text(0, "so far"), call(1, "t1", "write", `{"path":"a","conte`)),
			llm.StopMax, []llm.Part{llm.Text{Text: "so far"}},
		},
		"cut by max_tokens in thinking": {turn("max_tokens", thinking(0, "", "hm")[:2]), llm.StopMax, nil},
		"refusal": {turn("refusal", text(0, "No."), call(1, "t", "n")), llm.StopRefused,
			[]llm.Part{llm.Text{Text: "No."}}},
		"pause": {turn("pause_turn", text(0, "...")), llm.StopPaused,
			[]llm.Part{llm.Text{Text: "..."}}},
		"nothing":              {turn("end_turn"), llm.StopEnd, nil},
		"an empty text":        {turn("end_turn", text(0)), llm.StopEnd, nil},
		"tool_use without one": {turn("tool_use", text(0, "x")), llm.StopEnd, []llm.Part{llm.Text{Text: "x"}}},
		"a block of a kind to come": {turn("end_turn",
			[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"hologram"}}`,
				`{"type":"content_block_stop","index":0}`}, text(1, "x")), llm.StopEnd,
			[]llm.Part{llm.Text{Text: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(wiretest.Stream(c.body))
			r, ds, err := wiretest.Ask(t, v.model(anthropic.Options{MaxTokens: 25})) // more is not asked for
			require.NoError(t, err)
			want := llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: c.parts}, Stop: c.stop, Usage: usage,
				Model: "claude-answering"}
			if d := cmp.Diff(want, r); d != "" {
				t.Error(d)
			}
			shown := ""
			for _, d := range ds {
				shown += d.Text
			}
			if said := r.Message.Text(); shown != said {
				t.Errorf("shown %q, said %q", shown, said)
			}
		})
	}
}

// Thinking comes back to its endpoint as it came, also after a time on disk, and
// to no other.
func TestThinkingRoundTrip(t *testing.T) {
	redacted := []string{`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"sealed=="}}`, `{"type":"content_block_stop","index":1}`}
	v := serve(wiretest.Stream(turn("tool_use", thinking(0, "sig<1>==", "Let me ", `see "it"`), redacted,
		call(2, "t1", "list"))))
	m := v.model(anthropic.Options{})
	r, ds := wiretest.MustAsk(t, m)
	if len(ds) != 2 || ds[0].Think != "Let me " {
		t.Errorf("shown: %+v", ds)
	}
	stored := require.Value(json.Marshal(r.Message))(t)
	var again llm.Message
	require.NoError(t, json.Unmarshal(stored, &again))
	again.Parts = append([]llm.Part{
		llm.Thinking{Text: "foreign", Provider: "anthropic@elsewhere",
			Opaque: input(`{"type":"thinking","signature":"s"}`)},
		llm.Thinking{Text: "unsigned", Provider: again.Parts[0].(llm.Thinking).Provider},
	}, again.Parts...)
	result := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{ID: "t1",
		Parts: []llm.Part{llm.Text{Text: "a b"}}}}}
	wiretest.MustAsk(t, m, wiretest.User("hello"), again, result)
	var sent struct {
		Messages []struct{ Content []map[string]any }
	}
	require.NoError(t, json.Unmarshal([]byte(v.Sent()), &sent))
	want := []map[string]any{
		{"type": "thinking", "thinking": `Let me see "it"`, "signature": "sig<1>=="},
		{"type": "redacted_thinking", "data": "sealed=="},
		{"type": "tool_use", "id": "t1", "name": "list", "input": map[string]any{}},
	}
	if d := cmp.Diff(want, sent.Messages[1].Content); d != "" {
		t.Error(d)
	}
}

// fault is an event with an error.
func fault(kind string) string {
	return fmt.Sprintf("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":%q,\"message\":\"oops\"}}\n\n", kind)
}

func TestBrokenStreams(t *testing.T) {
	whole := call(0, "t", "n", `{}`)
	for name, c := range map[string]struct {
		body string
		kind llm.Kind
	}{
		"no terminal event":        {wiretest.Events(append(append([]string{start}, whole...), ended("tool_use"))...), llm.Incomplete},
		"no stop reason":           {wiretest.Events(append(append([]string{start}, whole...), stopped)...), llm.Incomplete},
		"a block without an end":   {turn("tool_use", whole[:2]), llm.Incomplete},
		"nothing at all":           {"", llm.Incomplete},
		"no events":                {"hello\n\n", llm.Incomplete},
		"an event that is no JSON": {wiretest.Events(start) + "event: message_delta\ndata: {\n\n", llm.Incomplete},
		"a piece without a block":  {turn("tool_use", whole[1:]), llm.Incomplete},
		"window exceeded":          {turn("model_context_window_exceeded", text(0, "x")), llm.ContextFull},
		"overloaded inside":        {wiretest.Events(append([]string{start}, text(0, "x")...)...) + fault("overloaded_error"), llm.Overloaded},
		"limited inside":           {wiretest.Events(start) + fault("rate_limit_error"), llm.Limited},
		"fault inside":             {wiretest.Events(start) + fault("api_error"), llm.Overloaded},
		"invalid inside":           {wiretest.Events(start) + fault("invalid_request_error"), llm.BadRequest},
		"unknown inside":           {wiretest.Events(start) + "event: error\ndata: what?\n\n", llm.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := wiretest.Ask(t, serve(wiretest.Stream(c.body)).model(anthropic.Options{}))
			if llm.KindOf(err) != c.kind || len(r.Message.Parts) > 0 {
				t.Errorf("kind %q, want %q: %v, %+v", llm.KindOf(err), c.kind, err, r)
			}
		})
	}
}
