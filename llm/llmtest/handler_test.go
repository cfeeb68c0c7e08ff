package llmtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/llmtest"
)

type modelFunc func(context.Context, llm.Request) (llm.Reply, error)

func (f modelFunc) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	return f(ctx, r)
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
		res := require.Value(http.Post(s.URL+c.path, "application/json", strings.NewReader(c.body)))(t)
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
	hello := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "hello"}}}}}
	if _, err := anthropic.New(anthropic.Options{Model: "m", BaseURL: s.URL}).Reply(ctx, hello, nil); !errors.Is(err, cause) {
		t.Error(err)
	}
	<-gone
}
