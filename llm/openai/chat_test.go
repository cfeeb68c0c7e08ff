package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

// delta is a chunk with a delta; finish is a chunk that ends the choice.
func delta(d string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","model":"qwen-answering","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, d)
}

func content(s string) string { return delta(fmt.Sprintf(`{"content":%q}`, s)) }

// piece is a chunk with a piece of a call; index, id or name may be missing.
func piece(index any, id, name, args string) string {
	c := map[string]any{}
	f := map[string]any{"arguments": args}
	if index != nil {
		c["index"] = index
	}
	if id != "" {
		c["id"], c["type"] = id, "function"
	}
	if name != "" {
		f["name"] = name
	}
	c["function"] = f
	b, err := json.Marshal(map[string]any{"tool_calls": []any{c}})
	if err != nil {
		panic(err)
	}
	return delta(string(b))
}

func finish(reason string) string {
	return fmt.Sprintf(`{"id":"c","model":"qwen-answering","choices":[{"index":0,"delta":{},"finish_reason":%q}],"error":null}`, reason)
}

const (
	counted = `{"id":"c","model":"qwen-answering","choices":[],"usage":{"prompt_tokens":350,"completion_tokens":25,"total_tokens":375,"prompt_tokens_details":{"cached_tokens":300}}}`
	done    = `[DONE]`
)

var chatUsage = llm.Usage{Input: 50, Output: 25, CacheRead: 300}

// completion is a whole stream around chunks.
func completion(reason string, chunks ...string) string {
	all := append([]string{delta(`{"role":"assistant","content":null}`)}, chunks...)
	return wiretest.Events(append(all, finish(reason), counted, done)...)
}

func TestChatReplies(t *testing.T) {
	two := []llm.Part{
		llm.Call{ID: "a", Name: "read", Input: input(`{"p":1}`)},
		llm.Call{ID: "b", Name: "list", Input: input(`{}`)},
	}
	minted := []llm.Part{
		llm.Call{ID: "call_1_1", Name: "read", Input: input(`{"p":1}`)},
		llm.Call{ID: "call_1_2", Name: "list", Input: input(`{}`)},
	}
	for name, c := range map[string]struct {
		body  string
		stop  llm.Stop
		parts []llm.Part
	}{
		"text": {completion("stop", content("Hel"), content("lo, wörld")), llm.StopEnd,
			[]llm.Part{llm.Text{Text: "Hello, wörld"}}},
		"nothing": {completion("stop"), llm.StopEnd, nil},
		"length": {completion("length", content("so"), piece(0, "a", "write", `{"x":`)),
			llm.StopMax, []llm.Part{llm.Text{Text: "so"}}},
		"filtered": {completion("content_filter", content("so"), piece(0, "a", "n", `{}`)),
			llm.StopRefused, []llm.Part{llm.Text{Text: "so"}}},
		"refusal": {completion("stop", delta(`{"refusal":"No."}`)), llm.StopRefused,
			[]llm.Part{llm.Text{Text: "No."}}},
		"parallel calls": {completion("tool_calls", piece(0, "a", "read", ""),
			piece(0, "", "", `{"p"`), piece(0, "", "", `:1}`), piece(1, "b", "list", ""), piece(1, "", "", "{}")),
			llm.StopTools, two},
		"calls interleaved": {completion("tool_calls", piece(0, "a", "read", ""),
			piece(1, "b", "list", ""), piece(0, "", "", `{"p"`), piece(1, "", "", "{}"), piece(0, "", "", `:1}`)),
			llm.StopTools, two},
		"calls that say stop": {completion("stop", piece(0, "a", "read", `{"p":1}`),
			piece(1, "b", "list", "")), llm.StopTools, two},
		"every call has index 0": {completion("tool_calls", piece(0, "a", "read", `{"p"`),
			piece(0, "", "", `:1}`), piece(0, "b", "list", "")), llm.StopTools, two},
		"no index": {completion("tool_calls", piece(nil, "a", "read", `{"p"`),
			piece(nil, "", "", `:1}`), piece(nil, "b", "list", "{}")), llm.StopTools, two},
		"no ids": {completion("tool_calls", piece(0, "", "read", `{"p":1}`),
			piece(1, "", "list", "{}")), llm.StopTools, minted},
		"no ids and every index 0": {completion("tool_calls", piece(0, "", "read", `{"p":1}`),
			piece(0, "", "list", "{}")), llm.StopTools, minted},
		"the same id twice": {completion("tool_calls", piece(0, "a", "read", `{"p":1}`),
			piece(1, "b", "list", "{}"), piece(0, "a", "read", "")), llm.StopTools, two},
		"name and id with every piece": {completion("tool_calls", piece(0, "a", "read", `{"p"`),
			piece(0, "a", "read", `:1}`), piece(1, "b", "list", "{}")), llm.StopTools, two},
		"arguments as an object": {completion("tool_calls",
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}},{"index":1,"id":"b","function":{"name":"list","arguments":null}}]}`)), llm.StopTools, two},
		"both calls in one chunk": {completion("tool_calls",
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}},{"index":1,"id":"b","function":{"name":"list","arguments":""}}]}`)), llm.StopTools, two},
		"no ids, and the name with every piece": {completion("tool_calls", piece(0, "", "read", `{"p":"\"}`),
			piece(0, "", "read", `"}`)), llm.StopTools,
			[]llm.Part{llm.Call{ID: "call_1_1", Name: "read", Input: input(`{"p":"\"}"}`)}}},
		"the end is said twice": {completion("stop", content("x"), finish("stop")), llm.StopEnd,
			[]llm.Part{llm.Text{Text: "x"}}},
		"an error that is null in each chunk": {strings.ReplaceAll(completion("stop", content("x")), `"choices"`,
			`"error":null,"choices"`), llm.StopEnd, []llm.Part{llm.Text{Text: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(wiretest.Stream(c.body))
			r, ds, err := wiretest.Ask(t, v.model(openai.Options{MaxTokens: 25})) // more is not asked for
			require.NoError(t, err)
			want := llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: c.parts}, Stop: c.stop,
				Usage: chatUsage, Model: "qwen-answering"}
			if d := cmp.Diff(want, r); d != "" {
				t.Error(d)
			}
			if s, _ := shown(ds); s != r.Message.Text() {
				t.Errorf("shown %q, said %q", s, r.Message.Text())
			}
		})
	}
}

// Reasoning goes back under its own name to the server that gave it, and to no other.
func TestChatReasoning(t *testing.T) {
	for _, field := range []string{"reasoning_content", "reasoning"} {
		v := serve(wiretest.Stream(completion("tool_calls", delta(fmt.Sprintf(`{%q:"Let me "}`, field)),
			delta(fmt.Sprintf(`{%q:"see"}`, field)), content("I look."), piece(0, "a", "list", "{}"))))
		m := v.model(openai.Options{})
		r, ds := wiretest.MustAsk(t, m)
		if _, think := shown(ds); think != "Let me see" {
			t.Errorf("shown %q", think)
		}
		r.Message.Parts = append(r.Message.Parts, llm.Thinking{Text: "foreign", Provider: "openai-chat@elsewhere",
			Opaque: input(`{"field":"reasoning"}`)})
		result := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{ID: "a"}}}
		wiretest.MustAsk(t, m, wiretest.User("hello"), r.Message, result)
		var sent struct{ Messages []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(v.Sent()), &sent))
		want := map[string]any{"role": "assistant", "content": "I look.", field: "Let me see",
			"tool_calls": []any{map[string]any{
				"id": "a", "type": "function", "function": map[string]any{"name": "list", "arguments": "{}"},
			}}}
		if d := cmp.Diff(want, sent.Messages[1]); d != "" {
			t.Error(d)
		}
	}
}

// A call without a name is one of no tool, so that its model is told which there are. One without anything is none.
func TestChatCallWithoutAName(t *testing.T) {
	v := serve(wiretest.Stream(completion("tool_calls", piece(0, "a", "", `{"x":1}`), piece(1, "b", "", ""), piece(2, "c", "list", "{}"))))
	r, _ := wiretest.MustAsk(t, v.model(openai.Options{}))
	calls := r.Message.Calls()
	if len(calls) != 2 || calls[0].Name != "call_without_a_name" || string(calls[0].Input) != `{"x":1}` || calls[1].Name != "list" {
		t.Errorf("%+v", calls)
	}
}

func TestChatBroken(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		kind llm.Kind
	}{
		"no finish reason":        {wiretest.Events(content("x"), piece(0, "a", "n", "{}"), done), llm.Incomplete},
		"nothing at all":          {"", llm.Incomplete},
		"only the end":            {wiretest.Events(done), llm.Incomplete},
		"a chunk that is no JSON": {wiretest.Events(content("x"), `{"choices":`), llm.Incomplete},
		"an error inside": {wiretest.Events(content("x"),
			`{"error":{"message":"gpu fell over","type":"server_error","code":500}}`), llm.Overloaded},
		"an error as text":      {wiretest.Events(content("x"), `{"error":"model runner stopped"}`), llm.Incomplete},
		"a full context inside": {wiretest.Events(`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), llm.ContextFull},
		"a limit inside":        {wiretest.Events(`{"error":{"code":"rate_limit_exceeded","message":"slow"}}`), llm.Limited},
		"out of resources":      {completion("insufficient_system_resource", content("x")), llm.Overloaded},
		"a network error there": {completion("network_error", piece(0, "a", "n", "{}")), llm.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := wiretest.Ask(t, serve(wiretest.Stream(c.body)).model(openai.Options{}))
			if llm.KindOf(err) != c.kind || len(r.Message.Parts) > 0 {
				t.Errorf("kind %q, want %q: %v, %+v", llm.KindOf(err), c.kind, err, r)
			}
		})
	}
}

// The other names for cached tokens.
func TestChatUsage(t *testing.T) {
	for raw, want := range map[string]llm.Usage{
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":80,"prompt_cache_miss_tokens":20}`:           {Input: 20, Output: 5, CacheRead: 80},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}`: {Input: 10, Output: 5, CacheRead: 60, CacheWrite: 30},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":null}`:                                         {Input: 100, Output: 5},
	} {
		v := serve(wiretest.Stream(wiretest.Events(content("x"), finish("stop"), fmt.Sprintf(`{"choices":[],"usage":%s}`, raw), done)))
		r, _, err := wiretest.Ask(t, v.model(openai.Options{}))
		if err != nil || r.Usage != want {
			t.Errorf("%s: %+v, %v", raw, r.Usage, err)
		}
	}
}
