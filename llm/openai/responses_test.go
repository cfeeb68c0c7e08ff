package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

const created = `{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"gpt-answering","status":"in_progress","output":[],"error":null}}`

const responseUsage = `"usage":{"input_tokens":350,"input_tokens_details":{"cached_tokens":300},"output_tokens":25,"output_tokens_details":{"reasoning_tokens":9},"total_tokens":375}`

// response is a whole stream: each item done, then the terminal event with all of them.
func response(terminal, extra string, items ...string) string {
	events := []string{created}
	for i, it := range items {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it))
	}
	return wiretest.Events(append(events,
		fmt.Sprintf(`{"type":%q,"response":{"id":"r","model":"gpt-answering",%s"output":[%s],%s}}`, terminal, extra,
			strings.Join(items, ","), responseUsage))...)
}

const (
	completed  = "response.completed"
	incomplete = "response.incomplete"
	saysHi     = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi, wörld","annotations":[]}]}`
	reasoned   = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"sealed=="}`
	callA      = `{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":"{\"p\": 1}","status":"completed"}`
	callB      = `{"type":"function_call","id":"fc_2","call_id":"b","name":"list","arguments":"","status":"completed"}`
	cutCall    = `{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":"{\"p","status":"incomplete"}`
)

// bare is r without what is opaque.
func bare(r llm.Reply) llm.Reply {
	for i, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			p.Opaque, p.Provider = nil, ""
			r.Message.Parts[i] = p
		case llm.Call:
			p.Opaque = nil
			r.Message.Parts[i] = p
		}
	}
	return r
}

func TestResponses(t *testing.T) {
	cut := `"incomplete_details":{"reason":"max_output_tokens"},`
	a := llm.Call{ID: "a", Name: "read", Input: input(`{"p":1}`)}
	b := llm.Call{ID: "b", Name: "list", Input: input(`{}`)}
	hi := llm.Text{Text: "Hi, wörld"}
	for name, c := range map[string]struct {
		body  string
		stop  llm.Stop
		parts []llm.Part
	}{
		"text": {response(completed, "", saysHi), llm.StopEnd, []llm.Part{hi}},
		"parallel calls": {response(completed, "", reasoned, saysHi, callA, callB), llm.StopTools,
			[]llm.Part{llm.Thinking{Text: "Hm."}, hi, a, b}},
		"nothing":            {response(completed, ""), llm.StopEnd, nil},
		"cut":                {response(incomplete, cut, saysHi, reasoned, cutCall), llm.StopMax, []llm.Part{hi}},
		"cut after thinking": {response(incomplete, cut, reasoned), llm.StopMax, nil},
		"filtered": {response(incomplete, `"incomplete_details":{"reason":"content_filter"},`, saysHi,
			callA), llm.StopRefused, []llm.Part{hi}},
		"refusal": {response(completed, "",
			`{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`, callA), llm.StopRefused,
			[]llm.Part{llm.Text{Text: "No."}}},
		"an item to come": {response(completed, "", `{"type":"hologram"}`, saysHi), llm.StopEnd, []llm.Part{hi}},
		"items only one by one": {
			strings.Replace(response(completed, "", callA, callB), `"output":[`+callA+","+callB+`]`, `"output":[]`, 1),
			llm.StopTools, []llm.Part{a, b},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(wiretest.Stream(c.body))
			r, _, err := wiretest.Ask(t, v.vendor(openai.Options{MaxTokens: 25})) // more is not asked for
			require.NoError(t, err)
			want := llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: c.parts}, Stop: c.stop,
				Usage: chatUsage, Model: "gpt-answering"}
			if d := cmp.Diff(want, bare(r)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestResponsesDeltas(t *testing.T) {
	v := serve(wiretest.Stream(wiretest.Events(created,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm"}`,
		`{"type":"response.output_text.delta","output_index":1,"delta":"Hi, "}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}`,
		`{"type":"response.output_text.delta","output_index":1,"delta":"wörld"}`,
	) + response(completed, "", saysHi)))
	_, ds := wiretest.MustAsk(t, v.vendor(openai.Options{}))
	want := []llm.Delta{{Part: 0, Think: "Hm"}, {Part: 1, Text: "Hi, "}, {Part: 1, Text: "wörld"}}
	if d := cmp.Diff(want, ds); d != "" {
		t.Error(d)
	}
}

// Items go back as they came, after a time on disk too, to the same endpoint;
// another one gets calls that say the same, and no reasoning.
func TestResponsesItemsUnchanged(t *testing.T) {
	unsealed := `{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"reasoning_text","text":"plain"}]}`
	phased := `{"type":"message","id":"msg_2","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
	v := serve(wiretest.Stream(response(completed, "", reasoned, unsealed, phased, callA, callB)))
	m := v.vendor(openai.Options{})
	r, _ := wiretest.MustAsk(t, m)
	stored := require.Value(json.Marshal(r.Message))(t)
	var said llm.Message
	require.NoError(t, json.Unmarshal(stored, &said))
	results := llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.Result{ID: "a", Parts: []llm.Part{llm.Text{Text: "x"}}},
		llm.Result{ID: "b", Parts: []llm.Part{llm.Text{Text: "see"},
			llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}},
		llm.Text{Text: "go on"},
	}}
	message := `{"type":"message","role":"assistant",%s"content":[{"type":"output_text","text":"I look."}]}`
	rest := []string{
		`{"type":"function_call_output","call_id":"a","output":"x"}`,
		`{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}`,
	}
	for name, c := range map[string]struct {
		to   llm.Model
		want []string
	}{
		"the same": {m, []string{reasoned, fmt.Sprintf(message, `"phase":"commentary",`), callA, callB}},
		"elsewhere": {v.model(openai.Options{API: openai.Responses}),
			[]string{fmt.Sprintf(message, ""),
				`{"type":"function_call","call_id":"a","name":"read","arguments":"{\"p\":1}"}`,
				`{"type":"function_call","call_id":"b","name":"list","arguments":"{}"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			wiretest.MustAsk(t, c.to, wiretest.User("hello"), said, results)
			var sent struct{ Input []any }
			require.NoError(t, json.Unmarshal([]byte(v.Sent()), &sent))
			var want []any
			require.NoError(t, json.Unmarshal([]byte("["+strings.Join(append(c.want, rest...), ",")+"]"), &want))
			if d := cmp.Diff(want, sent.Input[1:]); d != "" {
				t.Error(d)
			}
		})
	}
}

// failed is a stream that ends with an error.
func failed(err string) string {
	return wiretest.Events(created, `{"type":"response.failed","response":{"status":"failed","error":`+err+`}}`)
}

func TestResponsesBroken(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		kind llm.Kind
	}{
		"no terminal event": {wiretest.Events(created,
			`{"type":"response.output_item.done","output_index":0,"item":`+callA+`}`), llm.Incomplete},
		"nothing at all":        {"", llm.Incomplete},
		"failed":                {failed(`{"code":"server_error","message":"oops"}`), llm.Overloaded},
		"failed, limit":         {failed(`{"code":"rate_limit_exceeded","message":"slow"}`), llm.Limited},
		"failed, full":          {failed(`{"code":"context_length_exceeded","message":"long"}`), llm.ContextFull},
		"failed without a word": {failed("null"), llm.Incomplete},
		"error event": {wiretest.Events(created,
			`{"type":"error","code":"server_error","message":"oops","param":null}`), llm.Overloaded},
		"error event, nested": {wiretest.Events(created,
			`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`), llm.ContextFull},
		"incomplete, no reason": {response(incomplete, "", callA), llm.Incomplete},
		"cancelled":             {response("response.cancelled", "", callA), llm.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := wiretest.Ask(t, serve(wiretest.Stream(c.body)).vendor(openai.Options{}))
			if llm.KindOf(err) != c.kind || len(r.Message.Parts) > 0 {
				t.Errorf("kind %q, want %q: %v, %+v", llm.KindOf(err), c.kind, err, r)
			}
		})
	}
}
