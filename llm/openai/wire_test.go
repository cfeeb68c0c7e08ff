package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"muster/llm"
	"muster/llm/openai"
)

// server answers every request with what answer writes, and keeps what was asked.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	last   *http.Request
}

// asked is the body of request i.
func (v *server) asked(i int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bodies[i]
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	v := &server{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.bodies, v.last = append(v.bodies, b), r
		v.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() { v.CloseClientConnections(); v.Close() })
	return v
}

// model is one at the server, as at any that is not the vendor's.
func (v *server) model(o openai.Options) llm.Model {
	o.BaseURL = v.URL + "/v1"
	if o.Model == "" {
		o.Model = "qwen"
	}
	o.Client = v.Client()
	return openai.New(o)
}

// vendor is a model at the vendor's endpoint, which v plays.
func (v *server) vendor(t *testing.T, o openai.Options) llm.Model {
	to, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	if o.Model == "" {
		o.Model = "gpt-5.5"
	}
	o.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "api.openai.com" || r.URL.Scheme != "https" {
			t.Errorf("asked %s", r.URL)
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
		return v.Client().Transport.RoundTrip(r)
	})}
	return openai.New(o)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sse is a stream of events; one that has a type is named by it.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var t struct{ Type string }
		if json.Unmarshal([]byte(e), &t) == nil && t.Type != "" {
			fmt.Fprintf(&b, "event: %s\n", t.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

func streaming(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}
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
