package openai_test

import (
	"encoding/json"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

// What a request says about the length of the reply and about reasoning.
func TestLimitAndEffort(t *testing.T) {
	known := func(provider, name string) catalogue.Model {
		m, ok := catalogue.Lookup(provider, name)
		if !ok {
			t.Fatalf("%s/%s is not known", provider, name)
		}
		return m
	}
	for _, c := range []struct {
		name     string
		o        openai.Options
		isVendor bool
		asked    int // MaxTokens of the request
		limit    int // 0: none is sent
		effort   string
	}{
		{name: "an unknown server and model"},
		{name: "the user wants both", o: openai.Options{MaxTokens: 900, Effort: "high"}, limit: 900, effort: "high"},
		{name: "the request has its own limit", o: openai.Options{MaxTokens: 900}, asked: 700, limit: 700},
		{name: "a known model elsewhere", o: openai.Options{Known: known("xai", "grok-4.7")}, limit: 125000, effort: "medium"},
		{name: "a level that it lacks", o: openai.Options{Known: known("mistral", "mistral-small-2603"), Effort: "low"},
			limit: 64000, effort: "high"},
		{name: "the vendor allows all", o: openai.Options{Known: known("openai", "gpt-5.5")}, isVendor: true, effort: "medium"},
		{name: "more than the model can", o: openai.Options{Known: known("openai", "gpt-5.5")}, isVendor: true,
			asked: 500000, limit: 128000, effort: "medium"},
		{name: "a model that does not think", o: openai.Options{Known: known("qwen", "qwen3-coder-plus")}, limit: 65536},
	} {
		for _, api := range []openai.API{openai.Chat, openai.Responses} {
			v := serve(streams)
			c.o.API = api
			m := v.model(c.o)
			if c.isVendor {
				m = v.vendor(c.o)
			}
			require.Value(m.Reply(t.Context(), llm.Request{Messages: []llm.Message{wiretest.User("hi")}, MaxTokens: c.asked}, nil))(t)
			var q struct {
				A         int                     `json:"max_tokens"`
				B         int                     `json:"max_completion_tokens"`
				C         int                     `json:"max_output_tokens"`
				Effort    string                  `json:"reasoning_effort"`
				Reasoning struct{ Effort string } `json:"reasoning"`
			}
			require.NoError(t, json.Unmarshal([]byte(v.Sent()), &q))
			if got := q.A + q.B + q.C; got != c.limit || q.Effort+q.Reasoning.Effort != c.effort {
				t.Errorf("%s, %s: a limit of %d and effort %q, want %d and %q", c.name, api, got,
					q.Effort+q.Reasoning.Effort, c.limit, c.effort)
			}
		}
	}
}
