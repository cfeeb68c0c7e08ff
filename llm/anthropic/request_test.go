package anthropic_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/llm"
	"muster/llm/anthropic"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares the request with a file: a change of it empties every cache.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(got), "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the request is not that of %s:\n%s", file, b.String())
	}
}

func TestRequest(t *testing.T) {
	v := serve(t, streaming(turn("end_turn", text(0, "x"))))
	m := v.model(anthropic.Options{MaxTokens: 1234})
	provider := "anthropic@" + strings.TrimPrefix(v.URL, "http://")
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
				llm.Thinking{Text: "hm", Provider: provider,
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
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "request.json", v.asked(0))
}

func TestEffort(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-4-7":            `"adaptive"`,
		"claude-sonnet-5":            `"adaptive"`,
		"claude-opus-4-6":            `"adaptive"`,
		"claude-something":           `"adaptive"`,
		"glm-5":                      `"adaptive"`,
		"claude-haiku-4-5-20251001":  `"enabled"`,
		"claude-sonnet-4-20250514":   `"enabled"`,
		"claude-3-7-sonnet-20250219": `"enabled"`,
	} {
		v := serve(t, streaming(turn("end_turn")))
		if _, _, err := ask(t, v.model(anthropic.Options{Model: model, Effort: "high", MaxTokens: 1000})); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			MaxTokens int `json:"max_tokens"`
			Thinking  struct {
				Type   json.RawMessage
				Budget int `json:"budget_tokens"`
			}
			Output struct{ Effort string } `json:"output_config"`
		}
		if err := json.Unmarshal(v.asked(0), &sent); err != nil {
			t.Fatal(err)
		}
		adaptive := want == `"adaptive"`
		if string(sent.Thinking.Type) != want || adaptive != (sent.Output.Effort == "high") ||
			adaptive != (sent.Thinking.Budget == 0) || sent.MaxTokens != 1000+sent.Thinking.Budget {
			t.Errorf("%s: %+v", model, sent)
		}
		if _, _, err := ask(t, v.model(anthropic.Options{Model: model})); err != nil {
			t.Fatal(err)
		}
		if s := string(v.asked(1)); strings.Contains(s, "thinking") || strings.Contains(s, "output_config") {
			t.Errorf("%s without effort: %s", model, s)
		}
	}
}

func TestNothingToSend(t *testing.T) {
	v := serve(t, streaming(turn("end_turn")))
	if _, _, err := ask(t, v.model(anthropic.Options{}), user("  ")); llm.KindOf(err) != llm.BadRequest {
		t.Errorf("got %v", err)
	}
}

// A longer conversation begins with the bytes of a shorter one, apart from where
// the cache breakpoints are, of which there are never more than four and always
// one at the end.
func TestPrefix(t *testing.T) {
	v := serve(t, streaming(turn("end_turn")))
	m := v.model(anthropic.Options{})
	n := 0
	sent := func(t *rapid.T, r llm.Request) string {
		if _, err := m.Reply(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		s := string(v.asked(n))
		n++
		if c := strings.Count(s, `"cache_control"`); c < 1 || c > 4 {
			t.Fatalf("%d breakpoints", c)
		}
		_, messages, ok := strings.Cut(strings.ReplaceAll(s, `,"cache_control":{"type":"ephemeral"}`, ""),
			`"messages":[`)
		if !ok {
			t.Fatalf("no messages in %s", s)
		}
		var ends struct {
			Messages []struct{ Content []map[string]any }
		}
		if err := json.Unmarshal([]byte(s), &ends); err != nil {
			t.Fatal(err)
		}
		last := ends.Messages[len(ends.Messages)-1].Content
		if last[len(last)-1]["cache_control"] == nil {
			t.Fatalf("no breakpoint at the end of %s", s)
		}
		messages, _, ok = strings.Cut(messages, `],"model":`)
		if !ok {
			t.Fatalf("the messages do not end in %s", s)
		}
		return messages
	}
	rapid.Check(t, func(t *rapid.T) {
		r := llm.Request{
			System: rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,5}`), 0, 5).Draw(t, "system"),
			Tools:  []llm.Spec{{Name: "n"}},
		}
		before := ""
		for i := range rapid.IntRange(1, 5).Draw(t, "rounds") {
			parts := []llm.Part{llm.Text{Text: rapid.StringN(1, 20, -1).Draw(t, "text") + "."}}
			if i > 0 {
				call := llm.Call{ID: rapid.StringMatching(`[a-z.:]{1,6}`).Draw(t, "id"), Name: "n",
					Input: json.RawMessage(`{}`)}
				said := rapid.StringN(0, 10, -1).Draw(t, "said")
				r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant,
					Parts: []llm.Part{llm.Text{Text: said}, call}})
				parts = append([]llm.Part{llm.Result{ID: call.ID, Parts: parts}}, parts...)
			}
			r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: parts})
			now := sent(t, r)
			if !strings.HasPrefix(now, before) {
				t.Fatalf("no prefix:\n%s\n%s", before, now)
			}
			before = now
		}
	})
}

// Header and Extra of Options reach the server.
func TestHeaderAndExtra(t *testing.T) {
	v := serve(t, streaming(turn("end_turn", text(0, "x"))))
	m := v.model(anthropic.Options{Header: map[string]string{"X-Team": "red"},
		Extra: map[string]json.RawMessage{"top_k": json.RawMessage("5")}})
	if _, _, err := ask(t, m); err != nil {
		t.Fatal(err)
	}
	if v.last.Header.Get("X-Team") != "red" || !strings.Contains(string(v.asked(0)), `"top_k":5`) {
		t.Errorf("%v\n%s", v.last.Header, v.asked(0))
	}
}
