package llmtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/llmtest"
	"muster/llm/openai"
)

type modelFunc func(context.Context, llm.Request) (llm.Reply, error)

func (f modelFunc) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	return f(ctx, r)
}

func says(s string) modelFunc {
	return func(context.Context, llm.Request) (llm.Reply, error) {
		return llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant,
			Parts: []llm.Part{llm.Text{Text: s}}}}, nil
	}
}

// adapters are the ways to ask a server.
func adapters(url string) map[string]llm.Model {
	return map[string]llm.Model{
		"anthropic":        anthropic.New(anthropic.Options{Model: "m", BaseURL: url}),
		"openai-chat":      openai.New(openai.Options{Model: "m", BaseURL: url, API: openai.Chat}),
		"openai-responses": openai.New(openai.Options{Model: "m", BaseURL: url, API: openai.Responses}),
	}
}

var hello = llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "hello"}}}}}

// The handler needs no test around it, and one handler serves all.
func TestHandler(t *testing.T) {
	s := httptest.NewServer(llmtest.Handler(says("hi")))
	defer s.Close()
	for name, m := range adapters(s.URL) {
		shown := ""
		r, err := m.Reply(t.Context(), hello, func(d llm.Delta) { shown += d.Text })
		if err != nil || r.Message.Text() != "hi" || shown != "hi" || r.Model != "m" {
			t.Errorf("%s: %+v, shown %q, %v", name, r, shown, err)
		}
	}
}

func TestRefused(t *testing.T) {
	s := httptest.NewServer(llmtest.Handler(modelFunc(func(context.Context, llm.Request) (llm.Reply, error) {
		t.Error("the model was asked")
		return llm.Reply{}, nil
	})))
	defer s.Close()
	marks := strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 5)
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"no JSON":       {"/v1/messages", `{`, 400},
		"not streaming": {"/messages", `{"model":"m","max_tokens":1,"messages":[]}`, 400},
		"no messages":   {"/messages", `{"model":"m","max_tokens":1,"stream":true,"messages":[]}`, 400},
		"no max_tokens": {"/messages",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}`, 400},
		"assistant first": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"assistant","content":"a"}]}`, 400},
		"an empty text": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`, 400},
		"five breakpoints": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":[` +
				strings.TrimSuffix(marks, ",") + `]}]}`, 400},
		"a forged signature": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}]}`, 400},
		"input no object": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":[]}]}]}`, 400},
		"a result without a call": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}`, 400},
		"a result after other parts": {"/messages",
			`{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"c"}]}]}`, 400},
		"chat without a model": {"/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"a"}]}`,
			400},
		"chat, empty reply": {"/chat/completions",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant"}]}`, 400},
		"reasoning not stored": {"/responses",
			`{"model":"m","stream":true,"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs"}]}`, 400},
		"another path": {"/v2/messages", `{}`, 404},
	} {
		res, err := http.Post(s.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(b), `"message"`) {
			t.Errorf("%s: %d %s", name, res.StatusCode, b)
		}
	}
}

// The model behind the wire is cancelled when its asker goes away.
func TestAskerGoesAway(t *testing.T) {
	gone := make(chan struct{})
	asked := make(chan struct{})
	s := httptest.NewServer(llmtest.Handler(modelFunc(func(ctx context.Context, _ llm.Request) (llm.Reply, error) {
		close(asked)
		<-ctx.Done()
		close(gone)
		return llm.Reply{}, context.Cause(ctx)
	})))
	defer s.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(cause) }()
	if _, err := adapters(s.URL)["anthropic"].Reply(ctx, hello, nil); !errors.Is(err, cause) {
		t.Error(err)
	}
	<-gone
}
