// Package anthropic implements llm.Model by Anthropic's Messages API, through the vendor's SDK. Another base URL
// reaches servers that imitate the API.
//
// New is the only way in. Inside, request.go turns a conversation into a request, replyBuilder turns the events of a
// stream into a reply, and thinking.go keeps thinking in the form in which the API takes it back. A request is a
// function of the conversation alone, and a longer conversation begins with the bytes of a shorter one, so that the
// vendor's cache hits. A reply is complete or an error; no part of a broken one is returned.
//
// The package reads nothing from the environment and never retries; package retry does.
//
// Compatibility: New and the fields of Options stay. Fields may be added.
package anthropic

import (
	"context"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"muster/llm"
	"muster/llm/internal/wire"
)

// Endpoint is the vendor's base URL.
const Endpoint = "https://api.anthropic.com"

// DefaultMaxTokens is the length of a reply where neither the request nor Options set one.
const DefaultMaxTokens = 8000

// Options name the model, the server and the key. Nothing is read from the environment.
type Options struct {
	Model   string
	BaseURL string // "" is Endpoint; with or without a slash or /v1 at its end
	Key     string // sent as x-api-key; "" sends none
	// MaxTokens limits a reply where the request does not; 0 means DefaultMaxTokens.
	MaxTokens int

	// Effort asks for thinking: low, medium, high, xhigh or max, as far as the model
	// has them. "" sends nothing about thinking.
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
	opts := []option.RequestOption{
		option.WithBaseURL(wire.Base(o.BaseURL, "/")),
		option.WithHTTPClient(wire.Client(o.Client)),
		option.WithMaxRetries(0), // one retry policy, and it is not here
		option.WithoutOpenTelemetry(),
		option.WithOpenTelemetryPropagation(false),
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	peer := wire.Peer{URL: o.BaseURL, Model: o.Model}
	provider := "anthropic"
	if at := peer.Host(); at != "api.anthropic.com" {
		// A signature means nothing to another server.
		provider += "@" + at
	}
	return &model{
		o:        o,
		peer:     peer,
		provider: provider,
		// The service alone: the SDK's client would look for keys in the environment and in files.
		messages: sdk.NewMessageService(opts...),
	}
}

// model implements llm.Model.
type model struct {
	o    Options
	peer wire.Peer
	// provider marks the thinking that this endpoint made, because no other takes it back.
	provider string
	messages sdk.MessageService
}

// Reply implements llm.Model.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	params, err := m.params(r)
	if err != nil {
		return llm.Reply{}, err
	}
	x := wire.Exchange{Peer: m.peer, Emit: emit}
	stream := m.messages.NewStreaming(ctx, params, option.WithMiddleware(x.Do))
	defer func() { _ = stream.Close() }() // the reply is complete or lost by then
	b := replyBuilder{model: m, ids: wire.IDs{Turn: len(r.Messages)}, emit: emit}
	for stream.Next() {
		if err := b.event(stream.Current()); err != nil {
			return llm.Reply{}, err
		}
		if b.hasStopped {
			return b.reply() // what could follow is not waited for
		}
	}
	// An error event inside the stream has the body of an error answer, but no status and no headers.
	err = stream.Err()
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		err = m.peer.ErrorInStream([]byte(e.RawJSON()))
	}
	return llm.Reply{}, x.Error(ctx, err)
}
