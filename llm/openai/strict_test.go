package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"muster/internal/compact"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
	"muster/llm/llmtest"
	"muster/llm/openai"
)

// talk is a random conversation with servers that check each request as the vendors do.
type talk struct {
	*rand.Rand
	vendor, model string // who is asked now
	key           string
	api           openai.API
	history       *llm.History
	problems      []string
	requests      int
}

// The models that conversations change between, by their vendors.
var talkers = map[string][]string{
	"": {"qwen3", "llama"}, "openai": {"gpt-5.5", "gpt-5.4"}, "deepseek": {"deepseek-flash", "unknown"},
	"zai": {"glm-5.2", "glm-4.7"}, "moonshot": {"kimi-k3", "kimi-k2.7-code"}, "minimax": {"MiniMax-M3", "MiniMax-M2.7"},
	"qwen": {"qwen3.8-max", "qwen3.7-max"}, "mistral": {"mistral-medium-2604", "mistral-small-2603"},
	"xai": {"grok-4.7", "unknown"}, "openrouter": {"anthropic/claude-opus-5", "google/gemini-4-argon"},
	"gemini": {"gemini-4-argon", "gemini-3.8-flash"},
}

// RoundTrip checks a request and answers it.
func (k *talk) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	k.requests++
	problems, answer := []string(nil), ""
	if k.api == openai.Responses {
		problems, answer = llmtest.CheckResponses(r.Header, body), k.response(llmtest.SealReasoning(r.Header, k.model))
	} else {
		problems, answer = llmtest.CheckChat(k.vendor, body), k.chatReply()
	}
	for _, p := range problems {
		k.problems = append(k.problems, fmt.Sprintf("%s/%s: %s\n%s", k.vendor, k.model, p, body))
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// pick returns one of the words.
func (k *talk) pick(words ...string) string { return words[k.IntN(len(words))] }

// id returns the id of a call, in the form of one server or another.
func (k *talk) id() string {
	n := fmt.Sprint(k.IntN(1000))
	return k.pick("call_"+n, "functions.look:"+n, strings.Repeat("long", 20)+n, "toolu_01"+n, "chatcmpl-tool-"+n+"|é", "")
}

// chatReply returns the stream of a random reply of Chat Completions.
func (k *talk) chatReply() string {
	var events []string
	add := func(delta map[string]any) {
		events = append(events, text(map[string]any{"choices": []any{map[string]any{"delta": delta}}}))
	}
	switch k.IntN(6) {
	case 0:
		add(map[string]any{"reasoning_content": "hm"})
	case 1:
		add(map[string]any{"reasoning": "hm"})
	case 2:
		add(map[string]any{"reasoning": "hm", "reasoning_details": []any{
			map[string]any{"type": "reasoning.text", "text": "hm", "signature": k.model}}})
	case 3:
		add(map[string]any{"content": "<think>hm</think>"})
	case 4:
		add(map[string]any{"content": []any{map[string]any{"type": "thinking",
			"thinking": []any{map[string]any{"type": "text", "text": "hm"}}}}})
	}
	add(map[string]any{"content": k.pick("", "So.", " ", "\n")})
	for i := range k.IntN(4) {
		call := map[string]any{"index": i, "id": k.id(), "type": "function",
			"function": map[string]any{"name": k.pick("look", "odd name", "default_api:look"), "arguments": k.pick("", "{}", `{"a":1}`)}}
		if k.vendor == "gemini" && i == 0 && k.IntN(4) > 0 {
			call["extra_content"] = map[string]any{"google": map[string]any{"thought_signature": k.model}}
		}
		add(map[string]any{"tool_calls": []any{call}})
	}
	return wiretest.Events(append(events, fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":%q}]}`,
		k.pick("stop", "tool_calls", "tool_calls", "length", "content_filter")))...)
}

// response returns the stream of a random reply of the Responses API. Sealed is the encrypted content of its reasoning.
func (k *talk) response(sealed string) string {
	var items []string
	for n := range k.IntN(6) {
		switch k.IntN(4) {
		case 0:
			items = append(items, text(map[string]any{"type": "reasoning", "id": fmt.Sprint("rs_", n), "summary": []any{},
				"encrypted_content": k.pick(sealed, "")}))
		case 1:
			items = append(items, text(map[string]any{"type": "message", "role": "assistant", "phase": k.pick("commentary", "final_answer"),
				"content": []any{map[string]any{"type": "output_text", "text": k.pick("So.", "", " ")}}}))
		default:
			items = append(items, text(map[string]any{"type": "function_call", "id": fmt.Sprint("fc_", n),
				"call_id": "call_" + fmt.Sprint(k.IntN(1000)), "name": "look", "arguments": k.pick("{}", `{"a":1}`)}))
		}
	}
	status := k.pick("completed", "completed", "completed", "incomplete")
	return wiretest.Events(text(map[string]any{"type": "response." + status, "response": map[string]any{"status": status,
		"output":             json.RawMessage("[" + strings.Join(items, ",") + "]"),
		"incomplete_details": map[string]any{"reason": "max_output_tokens"}}}))
}

// open returns the model that is asked now.
func (k *talk) open() llm.Model {
	known, _ := catalogue.Lookup(k.vendor, k.model)
	known.Provider = k.vendor
	o := openai.Options{Model: k.model, API: k.api, Known: known, Client: &http.Client{Transport: k}, Key: k.key,
		MaxTokens: k.IntN(2) * 1000, BaseURL: "https://" + k.vendor + "server.example/v1"}
	if k.vendor == "openai" {
		o.BaseURL = ""
	}
	return openai.New(o)
}

// parts returns what the user says, or what is in a result: maybe nothing.
func (k *talk) parts() (out []llm.Part) {
	for range k.IntN(3) {
		out = append(out, []llm.Part{llm.Text{Text: strings.Repeat("news ", 1+k.IntN(2)*100)}, llm.Text{}, llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")},
			llm.Image{Media: "image/png"}}[k.IntN(4)])
	}
	return out
}

// run has the conversation.
func (k *talk) run(t *testing.T) {
	k.history = llm.NewHistory(nil)
	k.history.Say(llm.Text{Text: "Do it."})
	for range 2 + k.IntN(8) {
		switch k.IntN(8) {
		case 0: // another model, of the same vendor or not
			k.vendor = k.pick(k.vendor, k.pickVendor())
			k.model = k.pick(talkers[k.vendor]...)
		case 1: // a summary takes the place of what was said, or of its beginning; or older results are cut
			messages := k.history.Messages()
			changes, _ := compact.Rules{Kept: k.IntN(300)}.Clear(messages)
			short := compact.Apply(messages, changes)
			if k.IntN(2) == 0 {
				tail, _ := compact.Tail(messages, k.IntN(1500))
				short = compact.Behind([]string{"A summary."}, tail)
			}
			k.history = llm.NewHistory(short)
		case 2:
			k.key = k.pick("one", "two")
		}
		r, err := k.open().Reply(context.Background(), llm.Request{System: []string{"You help."}, CacheKey: "a@b",
			Tools: []llm.Spec{{Name: "look"}}, Messages: k.history.Messages()}, nil)
		if err != nil && llm.KindOf(err) != llm.Incomplete {
			t.Fatal(err)
		}
		k.history.Reply(r.Message.Parts...)
		for _, c := range r.Message.Calls() {
			k.history.Answer(llm.Result{ID: c.ID, Parts: k.parts()})
		}
		k.history.Say(k.parts()...)
		if r.Stop != llm.StopTools {
			k.history.Say(llm.Text{Text: "Go on."})
		}
	}
}

// pickVendor returns any vendor.
func (k *talk) pickVendor() string {
	if k.api == openai.Responses {
		return "openai"
	}
	all := []string{"", "openai", "deepseek", "zai", "moonshot", "minimax", "qwen", "mistral", "xai", "openrouter", "gemini"}
	return k.pick(all...)
}

// No request of a random conversation is one that a vendor refuses.
func TestStrictVendors(t *testing.T) {
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		talked := tier.Amount(100, 1000)
		requests, violations := 0, 0
		for seed := range uint64(talked) {
			k := &talk{Rand: rand.New(rand.NewPCG(seed, 1)), api: api}
			k.vendor = k.pickVendor()
			k.model = k.pick(talkers[k.vendor]...)
			k.run(t)
			requests += k.requests
			if violations += len(k.problems); len(k.problems) > 0 && violations < 10 {
				t.Errorf("%s, seed %d: %s", api, seed, k.problems[0])
			}
		}
		t.Logf("%s: %d conversations, %d requests, %d violations", api, talked, requests, violations)
		if requests < 3*talked || violations > 0 {
			t.Errorf("%s: %d violations in %d requests", api, violations, requests)
		}
	}
}
