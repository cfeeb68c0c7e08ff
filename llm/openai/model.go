// Package openai implements llm.Model by OpenAI's Responses API or by Chat Completions, through the vendor's SDK. Most
// other servers speak Chat Completions: Ollama, llama.cpp, vLLM, DeepSeek and many more. Each deviates in details,
// which are handled here and not in front of it.
//
// New is the only way in. For each API there is one file that builds requests (responses.go, chat.go) and one that
// reads streams (responsestream.go, chatstream.go); content.go converts parts for both. A request is a function of the
// conversation alone, and a longer conversation begins with the bytes of a shorter one, so that the vendor's cache
// hits. A reply is complete or an error.
//
// The package reads nothing from the environment and never retries; package retry does. It stores nothing at the
// vendor's.
//
// Compatibility: New, the APIs and the fields of Options stay. Fields may be added.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"muster/llm"
	"muster/llm/internal/wire"
)

// Endpoint is the vendor's base URL.
const Endpoint = "https://api.openai.com/v1/"

// DefaultMaxTokens is the length of a reply where neither the request nor Options set one.
const DefaultMaxTokens = 8000

// API is one of the two protocols.
type API string

// The protocols. Most servers other than the vendor's speak Chat only.
const (
	// Auto is Responses at the vendor's endpoint and Chat at any other.
	Auto API = ""
	// Chat is Chat Completions.
	Chat API = "chat"
	// Responses is the Responses API, with nothing stored at the vendor's.
	Responses API = "responses"
)

// Options name the model, the server and the key. Nothing is read from the environment.
type Options struct {
	Model     string
	BaseURL   string // "" is Endpoint; with or without a slash or /v1 at its end
	Key       string // sent as a bearer token; "" sends none
	API       API
	MaxTokens int // of a reply, for requests that do not say; 0 is DefaultMaxTokens

	// Effort asks for reasoning: minimal, low, medium, high, as far as the model has
	// them. "" sends nothing about it.
	Effort string

	Client *http.Client // nil is the default; its redirects are not followed
}

// New returns the model that o describes. It sends nothing yet, so that mistakes in o appear in the first Reply.
func New(o Options) llm.Model {
	if o.BaseURL == "" {
		o.BaseURL = Endpoint
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	m := &model{o: o, peer: wire.Peer{URL: o.BaseURL, Model: o.Model}}
	// The newer names of some fields are understood by the vendor alone, so they depend on the host and not on the API.
	m.isVendor = m.peer.Host() == "api.openai.com"
	if o.API == Auto {
		m.o.API = Chat
		if m.isVendor {
			m.o.API = Responses
		}
	}
	m.provider = "openai-" + string(m.o.API)
	if !m.isVendor {
		// What one server encrypted means nothing to another, and a conversation may change its server between two
		// runs.
		m.provider += "@" + m.peer.Host()
	}
	opts := []option.RequestOption{
		option.WithBaseURL(wire.Base(o.BaseURL, "/v1/")),
		option.WithHTTPClient(wire.Client(o.Client)),
		option.WithMaxRetries(0), // one retry policy, and it is not here
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	// Not NewClient: it would look into the environment.
	m.client = sdk.Client{Options: opts}
	return m
}

// model implements llm.Model.
type model struct {
	o        Options
	peer     wire.Peer
	isVendor bool
	// provider marks the reasoning that this endpoint made, because no other takes it back.
	provider string
	client   sdk.Client
}

// Reply implements llm.Model.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	if m.o.API == Responses {
		return m.replyByResponses(ctx, r, emit)
	}
	return m.replyByChat(ctx, r, emit)
}

// maxTokens returns the limit for the reply to r. There always is one, because a model that repeats itself does not
// stop.
func (m *model) maxTokens(r llm.Request) int64 {
	if r.MaxTokens > 0 {
		return int64(r.MaxTokens)
	}
	return int64(m.o.MaxTokens)
}

// replyReader collects a reply while it streams in. There is one for each API.
type replyReader interface {
	// event applies the JSON of the next event. It returns true if no later event matters.
	event(data []byte) (done bool, err error)
	// reply returns the finished reply; ok is false if the stream has not reached its end.
	reply() (r llm.Reply, ok bool, err error)
}

// stream sends params and reads the stream of the answer. It uses the SDK's decoder, but not its stream type, which
// takes an event with "error": null for an error. It returns a complete reply or an error, never a part of a reply,
// because a part could lack a call that the rest of the text speaks of.
func (m *model) stream(ctx context.Context, path string, params any, emit func(llm.Delta), to replyReader) (llm.Reply,
	error) {
	x := wire.Exchange{Peer: m.peer, Emit: emit}
	var res *http.Response
	err := m.client.Post(ctx, path, params, &res, option.WithJSONSet("stream", true), option.WithMiddleware(x.Do))
	if err != nil {
		return llm.Reply{}, x.Error(ctx, err)
	}
	events := ssestream.NewDecoder(res)
	defer func() { _ = events.Close() }() // the reply is complete or lost by then
	for events.Next() {
		data := events.Event().Data
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if isErrorEvent(data) {
			return llm.Reply{}, m.peer.ErrorInStream(data)
		}
		done, err := to.event(data)
		if err != nil {
			return llm.Reply{}, x.Error(ctx, err)
		}
		if done {
			break
		}
	}
	// A connection that breaks after the last event takes nothing away, so its error is looked at only without a reply.
	r, ok, err := to.reply()
	if err != nil || ok {
		return r, err
	}
	return llm.Reply{}, x.Error(ctx, events.Err())
}

// isErrorEvent reports whether an event is an error in the middle of the stream. Some servers send "error": null with
// every event.
func isErrorEvent(data []byte) bool {
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	return e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null"
}

// errBroken is the error for a stream that makes no sense. Its kind lets the request be repeated.
func (m *model) errBroken(f string, a ...any) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of "+m.peer.Host()+" is broken: "+f, a...)
}
