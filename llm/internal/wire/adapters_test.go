package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/llmtest"
	"muster/llm/openai"
)

// adapter is an implementation of llm.Model. What all of them promise is tested here, and what only one of them knows in
// its own package.
type adapter struct {
	name     string
	open     func(anthropic.Options) llm.Model // whose fields the others have too
	standIn  func(llmtest.T, llm.Model) *httptest.Server
	path     string                             // of a request
	key      string                             // a header with the key "k"
	messages string                             // the field with the messages
	limit    string                             // the field with the longest reply
	limits   [2]int                             // the longest reply that is asked for at first, and after it was cut, where nothing is known
	ends     string                             // is in the event without which a stream is not whole
	check    func(http.Header, []byte) []string // returns what the vendor would refuse a request for
}

var adapters = []adapter{
	{"messages", anthropic.New, llmtest.Anthropic, "/v1/messages", "X-Api-Key: k", "messages", "max_tokens", [2]int{32000, 64000},
		"message_stop", llmtest.CheckMessages},
	{"chat", viaOpenAI(openai.Chat), llmtest.OpenAIChat, "/v1/chat/completions", "Authorization: Bearer k", "messages", "max_tokens",
		[2]int{0, 32000}, `"finish_reason":"tool_calls"`, func(_ http.Header, body []byte) []string { return llmtest.CheckChat("", body) }},
	{"responses", viaOpenAI(openai.Responses), llmtest.OpenAIResponses, "/v1/responses", "Authorization: Bearer k", "input",
		"max_output_tokens", [2]int{0, 32000}, "response.completed", llmtest.CheckResponses},
}

func viaOpenAI(api openai.API) func(anthropic.Options) llm.Model {
	return func(o anthropic.Options) llm.Model {
		return openai.New(openai.Options{API: api, Model: o.Model, BaseURL: o.BaseURL, Key: o.Key, MaxTokens: o.MaxTokens,
			Known: o.Known, Client: o.Client, Header: o.Header, Extra: o.Extra, Renew: o.Renew})
	}
}

// ask asks the server at http://h, which network plays.
func (a adapter) ask(t *testing.T, n *network, r llm.Request) (llm.Reply, error) {
	o := anthropic.Options{Model: "m", BaseURL: "http://h", Client: &http.Client{Transport: n}}
	return a.open(o).Reply(t.Context(), r, nil)
}

// stream returns a reply as the vendor streams it.
func (a adapter) stream(t *testing.T, r llm.Reply) string {
	t.Helper()
	const said = `[{"role":"user","content":"hello"}]`
	w := httptest.NewRecorder()
	llmtest.Handler(&behind{replies: []llm.Reply{r}}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, a.path,
		strings.NewReader(`{"model":"m","max_tokens":9,"stream":true,"messages":`+said+`,"input":`+said+`}`)))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	return w.Body.String()
}

// network is a server without sockets. It keeps what it was asked.
type network struct {
	answer func(body string) *http.Response
	bodies []string
	last   *http.Request
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	n.last, n.bodies = r, append(n.bodies, string(body))
	return n.answer(string(body)), err
}

// streams returns a network with one answer.
func streams(body string) *network {
	return &network{answer: func(string) *http.Response { return answer(200, strings.NewReader(body)) }}
}

func answer(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}
}

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

func user(s string) llm.Message {
	return llm.Message{Role: llm.User, Parts: llm.Parts{llm.Text{Text: s}}}
}

func says(stop llm.Stop, parts ...llm.Part) llm.Reply {
	return llm.Reply{Stop: stop, Message: llm.Message{Role: llm.Assistant, Parts: parts}, Model: "scripted"}
}

func call(id string) llm.Call {
	return llm.Call{ID: id, Name: "look", Input: json.RawMessage(`{"path":"a\nb"}`)}
}

var hello = llm.Request{Messages: []llm.Message{user("hello")}}

// What goes over the wire to a model and back is what it would be without the wire; only what the wire cannot say is
// different: one system prompt, and, by Chat, neither errors nor images in results.
func TestThroughStandIn(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			first := says(llm.StopTools, llm.Thinking{Text: "What is there?", Provider: "script"}, llm.Text{Text: "I look, <ünder> all."},
				call("c1"), call("c2"))
			first.Usage = llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}
			r := llm.Request{
				System: []string{"one"}, MaxTokens: 99, CacheKey: "alice",
				Tools: []llm.Spec{{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)},
					{Name: "list", Schema: json.RawMessage(`{"type":"object"}`)}},
				Messages: []llm.Message{{Role: llm.User,
					Parts: llm.Parts{llm.Text{Text: "go"}, llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}},
			}
			failed := llm.Result{ID: "c1", Parts: llm.Parts{llm.Text{Text: "no file"}}}
			if a.name == "messages" {
				r.System, failed.IsError, first.Usage.CacheWriteLong = []string{"one", "two"}, true, 5
			}
			b := &behind{replies: []llm.Reply{first, says(llm.StopMax, llm.Text{Text: "So far"})}}
			s := a.standIn(t, b)
			m := a.open(anthropic.Options{Model: "m", BaseURL: s.URL, Client: s.Client()})
			got := require.Value(m.Reply(t.Context(), r, nil))(t)
			if d := cmp.Diff(r, b.got[0]); d != "" {
				t.Errorf("request: %s", d)
			}
			if d := cmp.Diff(bare(first), bare(got)); d != "" {
				t.Errorf("reply: %s", d)
			}

			r.Messages = append(r.Messages, got.Message, llm.Message{Role: llm.User, Parts: llm.Parts{failed,
				llm.Result{ID: "c2", Parts: llm.Parts{llm.Text{Text: "a"}}}, llm.Text{Text: "mail"}}})
			end, err := m.Reply(t.Context(), r, nil)
			if err != nil || end.Stop != llm.StopMax || end.Message.Text() != "So far" {
				t.Fatalf("%+v, %v", end, err)
			}
			seen := b.got[1].Messages
			if d := cmp.Diff(r.Messages[2], seen[2]); d != "" {
				t.Errorf("results: %s", d)
			}
			if d := cmp.Diff(bare(first).Message, bare(llm.Reply{Message: seen[1]}).Message); d != "" {
				t.Errorf("reply sent back: %s", d)
			}

			r.Messages = append(r.Messages[:2:2], user("hm"))
			if _, err := m.Reply(t.Context(), r, nil); llm.KindOf(err) != llm.BadHistory {
				t.Errorf("a call without a result: %v", err)
			}
		})
	}
}

// A conversation with thinking and calls goes on with any other vendor, who finds nothing to refuse.
func TestConversationsMoveToOtherVendors(t *testing.T) {
	for _, from := range adapters {
		said := streams(from.stream(t, says(llm.StopTools, llm.Thinking{Text: "Hm."}, llm.Text{Text: "I look."}, call("c1"), call("c2"))))
		first := require.Value(from.ask(t, said, hello))(t)
		r := llm.Request{Tools: []llm.Spec{{Name: "look"}}, Messages: []llm.Message{user("hello"), first.Message, {Role: llm.User,
			Parts: llm.Parts{llm.Result{ID: "c1", IsError: true}, llm.Result{ID: "c2", Parts: llm.Parts{llm.Text{Text: "a"}}}}}}}
		for _, to := range adapters {
			if to.name == from.name {
				continue
			}
			n := streams(to.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})))
			_, err := to.ask(t, n, r)
			if wrong := to.check(n.last.Header, []byte(n.bodies[0])); err != nil || len(wrong) > 0 || strings.Contains(n.bodies[0], "Hm.") {
				t.Errorf("from %s to %s: %v %q\n%s", from.name, to.name, err, wrong, n.bodies[0])
			}
		}
	}
}

// bare is r without what only one endpoint understands.
func bare(r llm.Reply) llm.Reply {
	r.Message.Parts = slices.Clone(r.Message.Parts)
	for i, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			r.Message.Parts[i] = llm.Thinking{Text: p.Text}
		case llm.Call:
			p.Opaque = nil
			r.Message.Parts[i] = p
		}
	}
	return r
}

func TestErrorsThroughStandIn(t *testing.T) {
	for _, a := range adapters {
		for _, e := range []*llm.Error{
			{Kind: llm.Overloaded, Err: errors.New("full house")},
			{Kind: llm.Limited, After: 12 * time.Second, Err: errors.New("slow down")},
			{Kind: llm.Spent, Err: errors.New("spend limit")},
			{Kind: llm.Incomplete, Err: errors.New("")},
			{Kind: llm.ContextFull, Err: errors.New("too long")},
			{Kind: llm.BadRequest, Err: errors.New("bad")},
			{Kind: llm.Denied, Err: errors.New("no")},
		} {
			s := a.standIn(t, &behind{err: e})
			_, err := a.open(anthropic.Options{Model: "m", BaseURL: s.URL, Client: s.Client()}).Reply(t.Context(), hello, nil)
			got, ok := errors.AsType[*llm.Error](err)
			if !ok || got.Kind != e.Kind || got.After != e.After || !strings.Contains(err.Error(), e.Err.Error()) {
				t.Errorf("%s: %v came as %v", a.name, e, err)
			}
		}
	}
}

// A stream of three calls, cut at every byte, with the connection broken or closed as if all were well: never anything
// but the whole or an error to ask again. The first tier cuts at every fifth byte, and at each of the last hundred.
func TestCutAtEveryByte(t *testing.T) {
	for _, a := range adapters {
		body := a.stream(t, says(llm.StopTools, llm.Text{Text: "I do three."}, call("c1"), call("c2"), call("c3")))
		whole := false
		for n := range len(body) + 1 {
			if !tier.IsAll() && n%5 != 0 && n < len(body)-100 {
				continue
			}
			cut := io.Reader(strings.NewReader(body[:n]))
			if n%2 == 0 && n < len(body) {
				cut = io.MultiReader(cut, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			r, err := a.ask(t, &network{answer: func(string) *http.Response { return answer(200, cut) }}, hello)
			switch {
			case err == nil && strings.Contains(body[:n], a.ends) && len(r.Message.Calls()) == 3 && r.Stop == llm.StopTools:
				whole = true
			case !whole && llm.KindOf(err) == llm.Incomplete, !whole && llm.KindOf(err) == llm.Overloaded:
			default:
				t.Fatalf("%s, cut at %d of %d: %+v, %v", a.name, n, len(body), r, err)
			}
		}
		if !whole {
			t.Errorf("%s: the whole stream is not taken", a.name)
		}
	}
}

// A server that does not stream answers in one piece, whatever it says of its type and whatever stands before it.
func TestRepliesInOnePiece(t *testing.T) {
	whole := map[string]string{
		"messages": `{"type":"message","model":"m","content":[{"type":"text","text":"I look."},` +
			`{"type":"tool_use","id":"c","name":"look","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}`,
		"chat": `{"object":"chat.completion","model":"m","choices":[{"message":{"content":"I look.","tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"look","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
		"responses": `{"object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":` +
			`[{"type":"output_text","text":"I look."}]},{"type":"function_call","call_id":"c","name":"look","arguments":"{\"a\":1}"}],` +
			`"usage":{"input_tokens":3,"output_tokens":2}}`,
	}
	want := says(llm.StopTools, llm.Text{Text: "I look."}, llm.Call{ID: "c", Name: "look", Input: json.RawMessage(`{"a":1}`)})
	want.Model, want.Usage = "m", llm.Usage{Input: 3, Output: 2}
	for _, a := range adapters {
		for _, media := range []string{"application/json", "text/event-stream", ""} {
			for _, before := range []string{"", " \r\n\t", strings.Repeat(" ", 10_000)} {
				got, err := a.ask(t, &network{answer: func(string) *http.Response {
					r := answer(200, strings.NewReader(before+whole[a.name]))
					r.Header.Set("Content-Type", media)
					return r
				}}, hello)
				if d := cmp.Diff(want, bare(got)); err != nil || d != "" {
					t.Errorf("%s as %q: %v %s", a.name, media, err, d)
				}
			}
		}
	}
}

// A request ends with its context, and the error is the cause.
func TestCancelled(t *testing.T) {
	for _, a := range adapters {
		body := a.stream(t, says(llm.StopEnd, llm.Text{Text: "then, then, then and then"}))
		end := strings.Index(body, "then")
		body = body[:end+strings.Index(body[end:], "\n\n")+2]
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // no terminal event, ever
		}))
		cause := errors.New("claim revoked")
		ctx, cancel := context.WithCancelCause(t.Context())
		m := a.open(anthropic.Options{Model: "m", BaseURL: s.URL})
		_, err := m.Reply(ctx, hello, func(d llm.Delta) {
			if strings.Contains(d.Text, "then") {
				cancel(cause)
			}
		})
		if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want the cause itself", a.name, err)
		}
		if _, err := m.Reply(ctx, hello, nil); !errors.Is(err, cause) {
			t.Errorf("%s: asked after the end: %v", a.name, err)
		}
		s.Close()
	}
}

// Every piece of a stream is a sound for a watchdog, one with nothing to show too.
func TestPingsAreHeard(t *testing.T) {
	for _, a := range adapters {
		body := a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"}))
		heard := make(chan bool, 100)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				_, _ = io.WriteString(w, ": ping\n\n")
				w.(http.Flusher).Flush()
				select {
				case <-heard: // goes on only when it was
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(w, body)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := a.open(anthropic.Options{Model: "m", BaseURL: s.URL}).Reply(ctx, hello, func(llm.Delta) { heard <- true }); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		cancel()
		s.Close()
	}
}

// A longer conversation begins with the bytes of a shorter one, apart from where the breakpoints of the cache are.
func TestPrefix(t *testing.T) {
	for _, a := range adapters {
		n := streams(a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})))
		rapid.Check(t, func(rt *rapid.T) {
			r := llm.Request{System: []string{"s"}, Tools: []llm.Spec{{Name: "n"}}}
			before := ""
			for i := range rapid.IntRange(1, 5).Draw(rt, "rounds") {
				parts := llm.Parts{llm.Text{Text: rapid.StringN(1, 20, -1).Draw(rt, "text") + "."}}
				if i > 0 {
					c := call(rapid.StringMatching(`[a-z.:]{1,6}`).Draw(rt, "id"))
					said := rapid.StringN(0, 10, -1).Draw(rt, "said")
					r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: said}, c}})
					shown := append(parts, llm.Image{Media: "image/png", Data: []byte{1}})
					parts = append(llm.Parts{llm.Result{ID: c.ID, Parts: shown[:rapid.IntRange(1, 2).Draw(rt, "images")]}}, parts...)
				}
				r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: parts})
				require.Value(a.ask(t, n, r))(rt)
				body := strings.ReplaceAll(n.bodies[len(n.bodies)-1], `,"cache_control":{"type":"ephemeral"}`, "")
				_, now, ok := strings.Cut(body, `"`+a.messages+`":[`)
				now, _, done := strings.Cut(now, `],"model":`)
				if !ok || !done || !strings.HasPrefix(now, before) {
					rt.Fatalf("%s: no prefix:\n%s\n%s", a.name, before, body)
				}
				before = now
			}
		})
	}
}

// What Options say reaches the server: headers, fields and the key. What only the environment says does not. The address
// may be given with or without a slash and the version.
func TestOptionsAndNothingElse(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "from-env", "ANTHROPIC_AUTH_TOKEN": "from-env", "ANTHROPIC_BASE_URL": "http://from-env.invalid",
		"ANTHROPIC_CUSTOM_HEADERS": "X-From-Env: from-env", "ANTHROPIC_PROFILE": "from-env", "OPENAI_API_KEY": "from-env",
		"OPENAI_ADMIN_KEY": "from-env", "OPENAI_BASE_URL": "http://from-env.invalid", "OPENAI_ORG_ID": "from-env",
		"OPENAI_PROJECT_ID": "from-env", "OPENAI_CUSTOM_HEADERS": "X-From-Env: from-env",
	} {
		t.Setenv(name, value)
	}
	for _, a := range adapters {
		n := streams(a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})))
		header, _, _ := strings.Cut(a.key, ":")
		for url, path := range map[string]string{"http://h": a.path, "http://h/": a.path, "http://h/v1": a.path, "http://h/v1/": a.path,
			"http://h/api": "/api" + a.path} {
			for _, key := range []string{"k", ""} {
				o := anthropic.Options{Model: "m", BaseURL: url, Key: key, Client: &http.Client{Transport: n},
					Header: map[string]string{"X-Team": "red"}, Extra: map[string]json.RawMessage{"top_k": json.RawMessage("5")}}
				require.Value(a.open(o).Reply(t.Context(), hello, nil))(t)
				h := n.last.Header
				if n.last.URL.Host != "h" || n.last.URL.Path != path || strings.Contains(fmt.Sprint(h), "from-env") || h.Get("Traceparent") != "" {
					t.Errorf("%s: %q asks %s with %v", a.name, url, n.last.URL, h)
				}
				if got := header + ": " + h.Get(header); (got == a.key) != (key == "k") || key == "" && h.Get(header) != "" {
					t.Errorf("%s with the key %q: %s", a.name, key, got)
				}
				if h.Get("X-Team") != "red" || !strings.Contains(n.bodies[len(n.bodies)-1], `"top_k":5`) {
					t.Errorf("%s: %v\n%s", a.name, h, n.bodies[len(n.bodies)-1])
				}
			}
		}
	}
}

// What cannot be sent is refused.
func TestNothingIsSent(t *testing.T) {
	for _, a := range adapters {
		n := streams("")
		if _, err := a.ask(t, n, llm.Request{System: []string{"s"}}); llm.KindOf(err) != llm.BadRequest || n.last != nil {
			t.Errorf("%s, no message: %v", a.name, err)
		}
		for _, url := range []string{"ftp://x/", "http://\x7f", "localhost:1234"} {
			_, err := a.open(anthropic.Options{Model: "m", BaseURL: url}).Reply(t.Context(), hello, nil)
			if llm.KindOf(err) != llm.BadRequest {
				t.Errorf("%s, %q: %v", a.name, url, err)
			}
		}
	}
}

// longest returns the longest reply that a request allows.
func (a adapter) longest(t *testing.T, body string) (n int) {
	t.Helper()
	var q map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Error(err)
	}
	if raw, ok := q[a.limit]; ok {
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Error(err)
		}
	}
	return n
}

// A 400 that names the longest reply is obeyed at once, and remembered.
func TestObeysNamedMaximum(t *testing.T) {
	for _, a := range adapters {
		body, limits := a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})), []int{}
		n := &network{answer: func(asked string) *http.Response {
			if limits = append(limits, a.longest(t, asked)); limits[len(limits)-1] > 8192 {
				return answer(400, strings.NewReader(`{"error":{"type":"invalid_request_error","message":`+
					`"max_tokens is too large: 20000. At most 8192 output tokens are supported."}}`))
			}
			return answer(200, strings.NewReader(body))
		}}
		m := a.open(anthropic.Options{Model: "m", BaseURL: "http://h", MaxTokens: 20000, Client: &http.Client{Transport: n}})
		for range 2 {
			require.Value(m.Reply(t.Context(), hello, nil))(t)
		}
		if !slices.Equal(limits, []int{20000, 8192, 8192}) {
			t.Errorf("%s: asked with %v", a.name, limits)
		}
	}
}

// A reply that is cut is asked for again with a longer limit, unless somebody has set the limit. A cut call never runs.
func TestACutReplyIsAskedForAgain(t *testing.T) {
	for _, a := range adapters {
		cut := a.stream(t, says(llm.StopMax, llm.Text{Text: "so far"}, call("c1")))
		whole := a.stream(t, says(llm.StopTools, llm.Text{Text: "so far"}, call("c1")))
		for _, c := range []struct {
			o      anthropic.Options
			asked  int // MaxTokens of the request
			limits []int
		}{
			{anthropic.Options{}, 0, a.limits[:]},
			{anthropic.Options{Known: catalogue.Model{Name: "m", MaxOutput: 50000, Window: 120000}}, 0, []int{30000, 50000}},
			{anthropic.Options{Known: catalogue.Model{Name: "m", MaxOutput: 30000}}, 0, []int{30000}},
			{anthropic.Options{MaxTokens: 700}, 0, []int{700}},
			{anthropic.Options{}, 900, []int{900}},
		} {
			var limits []int
			c.o.Model, c.o.BaseURL = "m", "http://h"
			c.o.Client = &http.Client{Transport: &network{answer: func(asked string) *http.Response {
				if limits = append(limits, a.longest(t, asked)); len(limits) == 1 {
					return answer(200, strings.NewReader(cut))
				}
				return answer(200, strings.NewReader(whole))
			}}}
			shown := ""
			r, err := a.open(c.o).Reply(t.Context(), llm.Request{Messages: hello.Messages, MaxTokens: c.asked}, func(d llm.Delta) {
				if shown += d.Text; d.Again {
					shown = ""
				}
			})
			if err != nil || !slices.Equal(limits, c.limits) || shown != "so far" || len(r.Message.Calls()) != len(limits)-1 {
				t.Errorf("%s, %v: asked with %v, shown %q, calls %v: %v", a.name, c.limits, limits, shown, r.Message.Calls(), err)
			}
		}
	}
}
