package anthropic_test

import (
	"encoding/json"
	"flag"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/internal/wiretest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRequest(t *testing.T) {
	v := serve(wiretest.Stream(turn("end_turn", text(0, "x"))))
	m := v.model(anthropic.Options{MaxTokens: 1234})
	_, err := m.Reply(t.Context(), llm.Request{
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
				llm.Thinking{Text: "hm", Provider: "anthropic@vendor",
					Opaque: json.RawMessage(`{"type":"thinking","signature":"sig"}`)},
				llm.Text{Text: "Two things."},
				llm.Call{ID: "t1", Name: "zeta", Input: json.RawMessage(`{"z":"1","a":2}`)},
				llm.Call{ID: "functions.alpha:0", Name: "alpha", Input: json.RawMessage(`{}`)},
			}},
			{Role: llm.User, Parts: []llm.Part{
				llm.Result{ID: "t1", Parts: []llm.Part{llm.Text{Text: "done"},
					llm.Image{Media: "image/jpeg", Data: []byte("\xff\xd8\xff")}}},
				llm.Result{ID: "functions.alpha:0", IsError: true,
					Parts: []llm.Part{llm.Text{Text: "no"}, llm.Text{Text: " "}}},
				llm.Text{Text: "<inbox>[]</inbox>"},
			}},
			{Role: llm.Assistant},
			{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Go on."}}},
		},
		CacheKey: "alice@team",
	}, nil)
	require.NoError(t, err)
	wiretest.Golden(t, "request.json", v.Sent(), *update)
}
