package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"muster/llm"
	"muster/llm/anthropic"
)

// vendor is a server that answers every request with what answer writes, and
// keeps what was asked.
type vendor struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	last   *http.Request
}

// asked is the body of request i.
func (v *vendor) asked(i int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bodies[i]
}

func serve(t *testing.T, answer http.HandlerFunc) *vendor {
	v := &vendor{}
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

func (v *vendor) model(o anthropic.Options) llm.Model {
	o.BaseURL = v.URL
	if o.Model == "" {
		o.Model = "claude-test-1"
	}
	o.Client = v.Client()
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

func text(i int, pieces ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`,
		i)}
	for _, p := range pieces {
		out = append(out,
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, i, p))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func call(i int, id, name string, pieces ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i, id, name)}
	for _, p := range pieces {
		out = append(out,
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, p))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func thinking(i int, signature string, pieces ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"thinking","thinking":"","signature":""}}`, i)}
	for _, p := range pieces {
		out = append(out,
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"thinking_delta","thinking":%q}}`,
				i, p))
	}
	if signature != "" {
		out = append(out,
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%q}}`,
				i, signature))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
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
