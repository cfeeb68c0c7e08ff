package openai_test

import (
	gocmp "cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

// server is one without sockets.
type server struct{ wiretest.Vendor }

func serve(answer http.HandlerFunc) *server { return &server{wiretest.Vendor{Answer: answer}} }

// model is one at the server, as at any that is not the vendor's.
func (v *server) model(o openai.Options) llm.Model {
	o.BaseURL, o.Client, o.Model = "http://server/v1", &http.Client{Transport: v}, gocmp.Or(o.Model, "qwen")
	return openai.New(o)
}

// vendor is a model at the vendor's endpoint, which v plays.
func (v *server) vendor(o openai.Options) llm.Model {
	o.Client, o.Model = &http.Client{Transport: v}, gocmp.Or(o.Model, "gpt-5.5")
	return openai.New(o)
}

func streaming(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}
}

// streams answers with nothing to say, by the API that is asked.
func streams(w http.ResponseWriter, r *http.Request) {
	body := completion("stop")
	if strings.HasSuffix(r.URL.Path, "/responses") {
		body = response(completed, "")
	}
	streaming(body)(w, r)
}

func user(s string) llm.Message {
	return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: s}}}
}

func input(s string) json.RawMessage { return json.RawMessage(s) }

func ask(t *testing.T, m llm.Model, ms ...llm.Message) (llm.Reply, []llm.Delta, error) {
	t.Helper()
	if len(ms) == 0 {
		ms = []llm.Message{user("hello")}
	}
	var ds []llm.Delta
	r, err := m.Reply(context.Background(), llm.Request{Messages: ms}, func(d llm.Delta) {
		if d.Answer = nil; d != (llm.Delta{}) {
			ds = append(ds, d)
		}
	})
	return r, ds, err
}

func shown(ds []llm.Delta) (text, think string) {
	for _, d := range ds {
		text += d.Text
		think += d.Think
	}
	return text, think
}

// asks is ask, which must not fail.
func asks(t *testing.T, m llm.Model, ms ...llm.Message) (llm.Reply, []llm.Delta) {
	t.Helper()
	r, ds, err := ask(t, m, ms...)
	require.NoError(t, err)
	return r, ds
}
