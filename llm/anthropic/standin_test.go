package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/llmtest"
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

// What goes over the wire to a model and back is what it would be without the wire.
func TestThroughStandIn(t *testing.T) {
	first := llm.Reply{
		Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
			llm.Thinking{Text: "What is there?", Provider: "script"},
			llm.Text{Text: "I look, <ünder> all."},
			llm.Call{ID: "c1", Name: "read", Input: json.RawMessage(`{"path":"a\nb"}`)},
			llm.Call{ID: "c2", Name: "list", Input: json.RawMessage(`{}`)},
		}},
		Stop: llm.StopTools, Usage: llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CacheWriteLong: 5},
		Model: "scripted",
	}
	second := llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: "Done."}}},
		Stop: llm.StopEnd, Model: "scripted"}
	b := &behind{replies: []llm.Reply{first, second}}
	s := llmtest.Anthropic(t, b)
	m := anthropic.New(anthropic.Options{Model: "m", BaseURL: s.URL, Client: s.Client()})

	r := llm.Request{
		System: []string{"one", "two"},
		Tools: []llm.Spec{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"type":"object"}`)},
			{Name: "list", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages:  []llm.Message{user("go")},
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
	thought, ok := got.Message.Parts[0].(llm.Thinking)
	if !ok || thought.Text != "What is there?" || thought.Opaque == nil {
		t.Errorf("thinking: %+v", got.Message.Parts[0])
	}
	want := first
	want.Message.Parts = append([]llm.Part{thought}, first.Message.Parts[1:]...)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("reply: %s", d)
	}

	r.Messages = append(r.Messages, got.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.Result{ID: "c1", IsError: true, Parts: []llm.Part{llm.Text{Text: "no file"}}},
		llm.Result{ID: "c2", Parts: []llm.Part{llm.Text{Text: "a"}, llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}},
		llm.Text{Text: "mail"},
	}})
	if _, err := m.Reply(t.Context(), r, nil); err != nil {
		t.Fatal(err) // the stand-in checks the signature and the pairing
	}
	seen := b.got[1].Messages
	if d := cmp.Diff(r.Messages[2], seen[2]); d != "" {
		t.Errorf("results: %s", d)
	}
	if d := cmp.Diff(r.Messages[1].Parts[1:], seen[1].Parts[1:]); d != "" {
		t.Errorf("reply sent back: %s", d)
	}

	for name, ms := range map[string][]llm.Message{
		"a call without a result": append(r.Messages[:2:2], user("hm")),
		"a result without a call": {user("x"), second.Message,
			{Role: llm.User, Parts: []llm.Part{llm.Result{ID: "c9"}}}},
		"a result after other parts": append(r.Messages[:2:2],
			llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "x"}, r.Messages[2].Parts[0],
				r.Messages[2].Parts[1]}}),
	} {
		bad := r
		bad.Messages = ms
		if _, err := m.Reply(t.Context(), bad, nil); llm.KindOf(err) != llm.BadHistory {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsThroughStandIn(t *testing.T) {
	for _, e := range []*llm.Error{
		{Kind: llm.Overloaded, Err: errors.New("full house")},
		{Kind: llm.Limited, After: 12 * time.Second, Err: errors.New("slow down")},
		{Kind: llm.Spent, Err: errors.New("spend limit")},
		{Kind: llm.Incomplete, Err: errors.New("cut")},
		{Kind: llm.ContextFull, Err: errors.New("too long")},
		{Kind: llm.BadRequest, Err: errors.New("bad")},
		{Kind: llm.Denied, Err: errors.New("no")},
	} {
		s := llmtest.Anthropic(t, &behind{err: e})
		_, _, err := ask(t, anthropic.New(anthropic.Options{Model: "m", BaseURL: s.URL, Client: s.Client()}))
		got, ok := errors.AsType[*llm.Error](err)
		if !ok || got.Kind != e.Kind || got.After != e.After {
			t.Errorf("%v came as %v", e, err)
		}
		if e.Kind != llm.Incomplete && !strings.Contains(err.Error(), e.Err.Error()) {
			t.Errorf("%v came as %v", e, err)
		}
	}
}
