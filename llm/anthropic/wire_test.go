package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
)

// vendor is a server without sockets, which keeps what it was asked.
type vendor struct {
	answer http.HandlerFunc
	bodies []string
	last   *http.Request
}

func serve(answer http.HandlerFunc) *vendor { return &vendor{answer: answer} }

// RoundTrip lets the server answer.
func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	v.bodies, v.last = append(v.bodies, string(body)), r
	w := httptest.NewRecorder()
	v.answer(w, r)
	return w.Result(), err
}

// sent is the body of the last request.
func (v *vendor) sent() string { return v.bodies[len(v.bodies)-1] }

func (v *vendor) model(o anthropic.Options) llm.Model {
	o.BaseURL, o.Client = "http://vendor", &http.Client{Transport: v}
	if o.Model == "" {
		o.Model = "claude-test-1"
	}
	return anthropic.New(o)
}

// sse is a stream of events, each given as its JSON.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var t struct{ Type string }
		if err := json.Unmarshal([]byte(e), &t); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", t.Type, e)
	}
	return b.String()
}

func streaming(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}
}

const start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-answering","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":300,"cache_creation_input_tokens":40,"output_tokens":1}}}`

const (
	ping    = `{"type":"ping"}`
	stopped = `{"type":"message_stop"}`
)

func ended(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":25}}`, reason)
}

// block is a block of a stream: how it begins, its deltas, and its end.
func block(i int, begins string, deltas ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, begins)}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

// deltas puts each of some pieces into a form.
func deltas(form string, pieces []string) (out []string) {
	for _, p := range pieces {
		out = append(out, fmt.Sprintf(form, p))
	}
	return out
}

func text(i int, pieces ...string) []string {
	return block(i, `{"type":"text","text":""}`, deltas(`{"type":"text_delta","text":%q}`, pieces)...)
}

func call(i int, id, name string, pieces ...string) []string {
	return block(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name),
		deltas(`{"type":"input_json_delta","partial_json":%q}`, pieces)...)
}

func thinking(i int, signature string, pieces ...string) []string {
	all := deltas(`{"type":"thinking_delta","thinking":%q}`, pieces)
	if signature != "" {
		all = append(all, fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, signature))
	}
	return block(i, `{"type":"thinking","thinking":"","signature":""}`, all...)
}

// turn is a whole stream around blocks.
func turn(reason string, blocks ...[]string) string {
	events := []string{start, ping}
	for _, b := range blocks {
		events = append(events, b...)
	}
	return sse(append(events, ended(reason), stopped)...)
}

func user(s string) llm.Message {
	return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: s}}}
}

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

// asks is ask, which must not fail.
func asks(t *testing.T, m llm.Model, ms ...llm.Message) (llm.Reply, []llm.Delta) {
	t.Helper()
	r, ds, err := ask(t, m, ms...)
	require.NoError(t, err)
	return r, ds
}
