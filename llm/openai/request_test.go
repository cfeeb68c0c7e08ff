package openai_test

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

var update = flag.Bool("update", false, "write the golden files anew")

var request = llm.Request{
	System: []string{"You are a <member>.", "", "The repository."},
	Tools: []llm.Spec{
		{Name: "zeta", Description: "last letter first",
			Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}`)},
		{Name: "alpha"},
	},
	Messages: []llm.Message{
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Do it."},
			llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}},
		{Role: llm.Assistant, Parts: []llm.Part{
			llm.Thinking{Text: "hm", Provider: "anthropic",
				Opaque: json.RawMessage(`{"type":"thinking","signature":"sig"}`)},
			llm.Text{Text: "Two things."},
			llm.Call{ID: "t1", Name: "zeta", Input: json.RawMessage(`{"z":"1","a":2}`)},
			llm.Call{ID: "t2", Name: "alpha", Input: json.RawMessage(`{}`)},
		}},
		{Role: llm.User, Parts: []llm.Part{
			llm.Result{ID: "t1", Parts: []llm.Part{llm.Text{Text: "done"},
				llm.Image{Media: "image/jpeg", Data: []byte("\xff\xd8\xff")}}},
			llm.Result{ID: "t2", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}},
			llm.Text{Text: "<inbox>[]</inbox>"},
		}},
		{Role: llm.Assistant},
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Go on."}, llm.Text{Text: "Now."}}},
	},
	MaxTokens: 1234,
	CacheKey:  "alice@team",
}

func TestRequest(t *testing.T) {
	v := serve(streams)
	for _, c := range []struct {
		file  string
		model llm.Model
	}{
		{"chat.json", v.model(openai.Options{})},
		{"chat_vendor.json", v.vendor(openai.Options{API: openai.Chat, Effort: "low"})},
		{"responses.json", v.vendor(openai.Options{Effort: "high"})},
	} {
		require.Value(c.model.Reply(t.Context(), request, nil))(t)
		wiretest.Golden(t, c.file, v.Sent(), *update)
	}
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		_, err := v.model(openai.Options{API: api}).Reply(t.Context(), llm.Request{System: []string{"nothing to answer"}}, nil)
		if llm.KindOf(err) != llm.BadRequest {
			t.Errorf("%s: %v", api, err)
		}
	}
	// Models from before reasoning refuse to be asked for it.
	require.Value(v.vendor(openai.Options{Model: "gpt-4.1"}).Reply(t.Context(), request, nil))(t)
	if s := v.Sent(); strings.Contains(s, "encrypted_content") || !strings.Contains(s, `"store":false`) {
		t.Error(s)
	}
}

// The key of the cache is that of all who begin alike, and goes to the servers that know it; the others get the agent's.
func TestCacheKey(t *testing.T) {
	v := serve(streams)
	shared, long := request, request
	shared.CacheGroup, long.CacheGroup = "team/coder", strings.Repeat("team/", 20)
	few := catalogue.Model{Quirks: []string{"few-fields"}}
	for i, c := range []struct {
		model   llm.Model
		request llm.Request
		want    string
	}{
		{v.vendor(openai.Options{API: openai.Chat}), shared, "team/coder "},
		{v.vendor(openai.Options{API: openai.Chat}), request, "alice@team "},
		{v.vendor(openai.Options{}), shared, "team/coder "},
		{v.vendor(openai.Options{}), long, "team_team_team_team_team_team_team_team_team_team_team_"},
		{v.model(openai.Options{API: openai.Chat}), shared, " alice@team"},
		{v.model(openai.Options{API: openai.Chat, Known: catalogue.Model{Provider: "moonshot"}}), shared, "team/coder "},
		{v.model(openai.Options{API: openai.Chat, Known: catalogue.Model{Quirks: []string{"prompt-cache-key"}}}), shared,
			"team/coder "},
		{v.model(openai.Options{API: openai.Chat, Known: few}), shared, " "},
		{v.model(openai.Options{API: openai.Responses}), shared, "team/coder alice@team"},
		{v.model(openai.Options{API: openai.Responses, Known: few}), shared, " "},
	} {
		require.Value(c.model.Reply(t.Context(), c.request, nil))(t)
		var sent struct {
			Key  string `json:"prompt_cache_key"`
			User string
		}
		require.NoError(t, json.Unmarshal([]byte(v.Sent()), &sent))
		if got := sent.Key + " " + sent.User; !strings.HasPrefix(got, c.want) || len(sent.Key) > 64 {
			t.Errorf("%d: sent %q, want %q", i, got, c.want)
		}
	}
}
