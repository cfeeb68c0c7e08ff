// Package openai answers llm.Model by Chat Completions or by Responses, through
// the vendor's SDK. Chat Completions is what most other servers speak: Ollama,
// llama.cpp, vLLM, DeepSeek and many more, each with its own ideas of the details,
// which are met here.
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

// Endpoint is the vendor's.
const Endpoint = "https://api.openai.com/v1/"

// DefaultMaxTokens is the length of a reply where neither the request nor Options says one.
const DefaultMaxTokens = 8000

// API is one of the two ways to ask.
type API string

const (
	// Auto is Responses at the vendor's endpoint and Chat at any other.
	Auto API = ""
	// Chat is Chat Completions.
	Chat API = "chat"
	// Responses is the Responses API, with nothing stored at the vendor's.
	Responses API = "responses"
)

// Options say which model, where, and as whom. Nothing is read from the environment.
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

// New returns the model that o describes. It asks nothing yet: what is wrong with
// o is said by the first Reply.
func New(o Options) llm.Model {
	if o.BaseURL == "" {
		o.BaseURL = Endpoint
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	m := &model{o: o, peer: wire.Peer{URL: o.BaseURL, Model: o.Model}}
	m.vendor = m.peer.Host() == "api.openai.com"
	if o.API == Auto {
		m.o.API = Chat
		if m.vendor {
			m.o.API = Responses
		}
	}
	m.provider = "openai-" + string(m.o.API)
	if !m.vendor {
		// What one server sealed means nothing to another.
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

type model struct {
	o        Options
	peer     wire.Peer
	vendor   bool
	provider string // of the reasoning that this endpoint makes and takes back
	client   sdk.Client
}

// Reply implements llm.Model.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	if m.o.API == Responses {
		return m.respond(ctx, r, emit)
	}
	return m.chat(ctx, r, emit)
}

func (m *model) most(r llm.Request) int64 {
	if r.MaxTokens > 0 {
		return int64(r.MaxTokens)
	}
	return int64(m.o.MaxTokens)
}

// reading is a reply while it streams in.
type reading interface {
	// event takes the JSON of the next event; done says that nothing after it matters.
	event(data []byte) (done bool, err error)
	// reply is the finished reply; ok is false while the end is not there.
	reply() (r llm.Reply, ok bool, err error)
}

// ask posts params and reads the stream of the answer. The SDK's decoder reads
// it; its stream type would take an event with "error": null for an error.
func (m *model) ask(ctx context.Context, path string, params any, emit func(llm.Delta), to reading) (llm.Reply, error) {
	x := wire.Exchange{Peer: m.peer, Emit: emit}
	var res *http.Response
	err := m.client.Post(ctx, path, params, &res, option.WithJSONSet("stream", true), option.WithMiddleware(x.Do))
	if err != nil {
		return llm.Reply{}, x.Failed(ctx, err)
	}
	events := ssestream.NewDecoder(res)
	defer events.Close()
	for events.Next() {
		data := events.Event().Data
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if failed(data) {
			return llm.Reply{}, m.peer.Event(data)
		}
		done, err := to.event(data)
		if err != nil {
			return llm.Reply{}, x.Failed(ctx, err)
		}
		if done {
			break
		}
	}
	// A connection that breaks after the end has been said takes nothing away.
	r, ok, err := to.reply()
	if err != nil || ok {
		return r, err
	}
	return llm.Reply{}, x.Failed(ctx, events.Err())
}

// failed says whether an event is an error in the middle of the stream.
func failed(data []byte) bool {
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	return e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null"
}

// broken is the error for a stream that makes no sense.
func (m *model) broken(f string, a ...any) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of "+m.peer.Host()+" is broken: "+f, a...)
}
