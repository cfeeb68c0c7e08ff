package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
)

// asking is what a request says about thinking.
type asking struct {
	Max      int               `json:"max_tokens"`
	Thinking map[string]any    `json:"thinking"`
	Output   map[string]string `json:"output_config"`
	Warm     *float64          `json:"temperature"`
	Beta     string            `json:"-"` // the header
}

func TestThinkingStyles(t *testing.T) {
	budget := func(n int) map[string]any { return map[string]any{"type": "enabled", "budget_tokens": float64(n)} }
	adaptive := map[string]any{"type": "adaptive"}
	effort := func(s string) map[string]string { return map[string]string{"effort": s} }
	const beta = "interleaved-thinking-2025-05-14"
	half := 0.5
	for _, c := range []struct {
		model, effort string
		max           int
		want          asking
	}{
		{"claude-opus-5-5", "", 0, asking{Max: 128000, Thinking: adaptive, Output: effort("medium")}},
		{"claude-sonnet-4-6", "xhigh", 0, asking{Max: 64000, Thinking: adaptive, Output: effort("max")}},
		{"claude-haiku-5-5", "minimal", 999_999, asking{Max: 128000, Thinking: adaptive, Output: effort("low")}},
		{"claude-haiku-4-5", "", 1000, asking{Max: 5096, Thinking: budget(4096), Beta: beta}},
		// The limit has room for the budget, and is never above the model's own.
		{"claude-haiku-4-5", "max", 0, asking{Max: 64000, Thinking: budget(16384), Beta: beta}},
		{"claude-haiku-4-5-20251001", "low", 64000, asking{Max: 64000, Thinking: budget(2048), Beta: beta}},
		{"glm-5", "", 0, asking{Max: 32000, Warm: &half}},
		{"claude-opus-4-7", "high", 1000, asking{Max: 1000, Thinking: adaptive, Output: effort("high")}},
		{"claude-other-4-6", "low", 1000, asking{Max: 1000, Thinking: adaptive, Output: effort("low")}},
		{"claude-something", "", 0, asking{Max: 32000, Warm: &half}},
		{"claude-sonnet-4-20250514", "low", 1000, asking{Max: 3048, Thinking: budget(2048)}},
		{"glm-5", "minimal", 0, asking{Max: 32000, Thinking: adaptive, Output: effort("low")}},
		{"claude-3-7-sonnet-20250219", "low", 1000, asking{Max: 3048, Thinking: budget(2048)}},
	} {
		v := serve(wiretest.Stream(turn("end_turn")))
		known, _ := catalogue.Lookup("anthropic", c.model)
		m := v.model(anthropic.Options{Model: c.model, Known: known, Effort: c.effort, MaxTokens: c.max,
			Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0.5")}})
		wiretest.MustAsk(t, m)
		got := asking{Beta: v.Last.Header.Get("Anthropic-Beta")}
		require.NoError(t, json.Unmarshal([]byte(v.Sent()), &got))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s, effort %q: %s", c.model, c.effort, d)
		}
	}
}

// The user's own betas stay, and so does a temperature beside thinking that the user has set.
func TestThinkingBesideWhatTheUserSets(t *testing.T) {
	known, _ := catalogue.Lookup("anthropic", "claude-haiku-4-5")
	v := serve(wiretest.Stream(turn("end_turn")))
	m := v.model(anthropic.Options{Model: "claude-haiku-4-5", Known: known, Header: map[string]string{"anthropic-beta": "mine"},
		Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "thinking": json.RawMessage("null")}})
	wiretest.MustAsk(t, m)
	if got := v.Last.Header.Values("Anthropic-Beta"); len(got) != 1 || got[0] != "interleaved-thinking-2025-05-14,mine" {
		t.Errorf("betas %q", got)
	}
	if s := v.Sent(); strings.Contains(s, `"thinking"`) || !strings.Contains(s, `"temperature":0.5`) {
		t.Error(s)
	}
}

// A server that allows less than the budget gets a budget that fits, or none.
func TestBudgetFitsTheLimit(t *testing.T) {
	known, _ := catalogue.Lookup("anthropic", "claude-haiku-4-5")
	for most, want := range map[string]string{"4000": `"budget_tokens":2000`, "1500": ""} {
		v := serve(nil)
		v.Answer = func(w http.ResponseWriter, r *http.Request) {
			if len(v.Bodies) > 1 {
				wiretest.Stream(turn("end_turn"))(w, r)
				return
			}
			http.Error(w, `{"error":{"type":"invalid_request_error","message":"max_tokens: 64000 > `+most+`, which is the maximum"}}`, 400)
		}
		wiretest.MustAsk(t, v.model(anthropic.Options{Model: "claude-haiku-4-5", Known: known, Effort: "max"}))
		s := v.Sent()
		if !strings.Contains(s, `"max_tokens":`+most) || !strings.Contains(s, want) || want == "" && strings.Contains(s, "budget") {
			t.Errorf("%s: %s", most, s)
		}
	}
}

// A reply that was paused goes on, and one that ends with blanks does not end the conversation.
func TestPausedGoesOn(t *testing.T) {
	v := serve(wiretest.Stream(turn("pause_turn", text(0, "let me "))))
	m := v.model(anthropic.Options{})
	r, _, err := wiretest.Ask(t, m)
	if err != nil || r.Stop != llm.StopPaused {
		t.Fatal(r, err)
	}
	wiretest.MustAsk(t, m, wiretest.User("hello"), r.Message)
	want := `[{"text":"let me ","type":"text"}],"role":"assistant"},{"content":[{"text":"Go on.","cache_control":{"type":"ephemeral"},"type":"text"}],"role":"user"}]`
	if s := v.Sent(); !strings.Contains(s, want) {
		t.Error(s)
	}
}

// What the API refuses in a result, and images that it takes from nobody, stand there in another form.
func TestResultsThatWouldBeRefused(t *testing.T) {
	v := serve(wiretest.Stream(turn("end_turn")))
	png := []byte("\x89PNG\r\n\x1a\n")
	blind := catalogue.Model{Name: "blind"}
	for _, c := range []struct {
		result llm.Result
		known  catalogue.Model
		want   string
	}{
		{llm.Result{IsError: true}, catalogue.Model{}, `"is_error":true,"cache_control":{"type":"ephemeral"},"content":[{"text":"(no output)","type":"text"}]`},
		{llm.Result{}, catalogue.Model{}, `{"tool_use_id":"c",`},
		{llm.Result{IsError: true, Parts: llm.Parts{llm.Image{Media: "image/png", Data: png}}}, catalogue.Model{},
			`{"tool_use_id":"c","cache_control":{"type":"ephemeral"},"content":[{"source":{"data":"iVBORw0KGgo="`},
		{llm.Result{Parts: llm.Parts{llm.Image{Media: "image/jpeg", Data: png}}}, catalogue.Model{}, `"media_type":"image/png"`},
		{llm.Result{Parts: llm.Parts{llm.Image{Media: "image/png", Data: append(png[:8:8], make([]byte, 4<<20)...)}}}, catalogue.Model{},
			"(an image was here; it has more than 3.9 MB"},
		{llm.Result{Parts: llm.Parts{llm.Image{Media: "image/png", Data: []byte("<svg/>")}}}, catalogue.Model{},
			"(an image was here; it is none of PNG"},
		{llm.Result{Parts: llm.Parts{llm.Image{Media: "image/png", Data: png}}}, blind, "(an image was here; this model takes no images)"},
		{llm.Result{Parts: llm.Parts{llm.Image{Media: "image/png"}, llm.Text{Text: "a"}}}, blind, `"content":[{"text":"a","type":"text"}]`},
	} {
		c.result.ID = "c"
		wiretest.MustAsk(t, v.model(anthropic.Options{Known: c.known}), wiretest.User("hello"),
			llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "c", Name: "look"}}},
			llm.Message{Role: llm.User, Parts: llm.Parts{c.result}})
		if s := v.Sent(); !strings.Contains(s, c.want) {
			t.Errorf("no %s in %.500s", c.want, s)
		}
	}
}
