package anthropic_test

import (
	"fmt"
	"net/http"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/internal/wiretest"
)

// vendor is one without sockets.
type vendor struct{ wiretest.Vendor }

func serve(answer http.HandlerFunc) *vendor { return &vendor{wiretest.Vendor{Answer: answer}} }

func (v *vendor) model(o anthropic.Options) llm.Model {
	o.BaseURL, o.Client = "http://vendor", &http.Client{Transport: v}
	if o.Model == "" {
		o.Model = "claude-test-1"
	}
	return anthropic.New(o)
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
	return wiretest.Events(append(events, ended(reason), stopped)...)
}
