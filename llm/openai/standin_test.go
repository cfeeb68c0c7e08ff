package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/llm"
	"muster/llm/llmtest"
	"muster/llm/openai"
)

// behind is a model behind the wire: it keeps the requests and answers in turn.
type behind struct {
	got     []llm.Request
	replies []llm.Reply
	err     error
}

func (b *behind) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	b.got = append(b.got, r)
	if b.err != nil {
		return llm.Reply{}, b.err
	}
	return b.replies[len(b.got)-1], nil
}

var standIns = map[openai.API]func(llmtest.T, llm.Model) *httptest.Server{
	openai.Chat:      llmtest.OpenAIChat,
	openai.Responses: llmtest.OpenAIResponses,
}

// What goes over the wire to a model and back is what it would be without the
// wire; only what the wire cannot say is different: one system prompt, and, by
// Chat, neither errors nor images in results.
func TestThroughStandIn(t *testing.T) {
	for api, standIn := range standIns {
		t.Run(string(api), func(t *testing.T) {
			first := llm.Reply{
				Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
					llm.Thinking{Text: "What is there?", Provider: "script"},
					llm.Text{Text: "I look, <ünder> all."},
					llm.Call{ID: "c1", Name: "read", Input: json.RawMessage(`{"path":"a\nb"}`)},
					llm.Call{ID: "c2", Name: "list", Input: json.RawMessage(`{}`)},
				}},
				Stop: llm.StopTools, Usage: llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4},
				Model: "scripted",
			}
			second := llm.Reply{Message: llm.Message{Role: llm.Assistant,
				Parts: []llm.Part{llm.Text{Text: "So far"}}}, Stop: llm.StopMax, Model: "scripted"}
			b := &behind{replies: []llm.Reply{first, second}}
			s := standIn(t, b)
			m := openai.New(openai.Options{Model: "m", BaseURL: s.URL, API: api, Client: s.Client()})
			r := llm.Request{
				System: []string{"one"},
				Tools: []llm.Spec{{Name: "read", Description: "reads",
					Schema: json.RawMessage(`{"type":"object"}`)},
					{Name: "list", Schema: json.RawMessage(`{"type":"object"}`)}},
				Messages: []llm.Message{{Role: llm.User,
					Parts: []llm.Part{llm.Text{Text: "go"}, llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}},
				MaxTokens: 99,
				CacheKey:  "alice",
			}
			got, err := m.Reply(t.Context(), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(r, b.got[0]); d != "" {
				t.Errorf("request: %s", d)
			}
			want := first
			want.Message.Parts = append([]llm.Part{llm.Thinking{Text: "What is there?"}}, first.Message.Parts[1:]...)
			sentBack := llm.Message{Role: llm.Assistant, Parts: append([]llm.Part(nil), got.Message.Parts...)}
			if d := cmp.Diff(want, bare(got)); d != "" {
				t.Errorf("reply: %s", d)
			}

			r.Messages = append(r.Messages, sentBack, llm.Message{Role: llm.User, Parts: []llm.Part{
				llm.Result{ID: "c1", Parts: []llm.Part{llm.Text{Text: "no file"}}},
				llm.Result{ID: "c2", Parts: []llm.Part{llm.Text{Text: "a"}}},
				llm.Text{Text: "mail"},
			}})
			end, err := m.Reply(t.Context(), r, nil)
			if err != nil || end.Stop != llm.StopMax || end.Message.Text() != "So far" {
				t.Fatalf("%+v, %v", end, err)
			}
			seen := b.got[1].Messages
			if d := cmp.Diff(r.Messages[2], seen[2]); d != "" {
				t.Errorf("results: %s", d)
			}
			if d := cmp.Diff(first.Message.Parts[1:], seen[1].Parts[1:]); d != "" {
				t.Errorf("reply sent back: %s", d)
			}
			if th, ok := seen[1].Parts[0].(llm.Thinking); !ok || th.Text != "What is there?" {
				t.Errorf("thinking sent back: %+v", seen[1].Parts[0])
			}

			bad := r
			bad.Messages = append(r.Messages[:2:2], user("hm"))
			if _, err := m.Reply(t.Context(), bad, nil); llm.KindOf(err) != llm.BadHistory {
				t.Errorf("a call without a result: %v", err)
			}
		})
	}
}

func TestErrorsThroughStandIn(t *testing.T) {
	for api, standIn := range standIns {
		for _, e := range []*llm.Error{
			{Kind: llm.Overloaded, Err: errors.New("full house")},
			{Kind: llm.Limited, After: 12 * time.Second, Err: errors.New("slow down")},
			{Kind: llm.Spent, Err: errors.New("spend limit")},
			{Kind: llm.Incomplete, Err: errors.New("cut")},
			{Kind: llm.ContextFull, Err: errors.New("too long")},
			{Kind: llm.BadRequest, Err: errors.New("bad")},
			{Kind: llm.Denied, Err: errors.New("no")},
		} {
			s := standIn(t, &behind{err: e})
			_, _, err := ask(t, openai.New(openai.Options{Model: "m", BaseURL: s.URL, API: api, Client: s.Client()}))
			got, ok := errors.AsType[*llm.Error](err)
			if !ok || got.Kind != e.Kind || got.After != e.After {
				t.Errorf("%s: %v came as %v", api, e, err)
			}
			if e.Kind != llm.Incomplete && !strings.Contains(err.Error(), e.Err.Error()) {
				t.Errorf("%s: %v came as %v", api, e, err)
			}
		}
	}
}
