// Package anthropic answers llm.Model by the Messages API, through the vendor's
// SDK. Another base URL reaches servers that imitate it.
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

// Endpoint is the vendor's.
const Endpoint = "https://api.anthropic.com"

// DefaultMaxTokens is the length of a reply where neither the request nor Options says one.
const DefaultMaxTokens = 8000

// Options say which model, where, and as whom. Nothing is read from the environment.
type Options struct {
	Model     string
	BaseURL   string // "" is Endpoint; with or without a slash or /v1 at its end
	Key       string // sent as x-api-key; "" sends none
	MaxTokens int    // of a reply, for requests that do not say; 0 is DefaultMaxTokens

	// Effort asks for thinking: low, medium, high, xhigh or max, as far as the model
	// has them. "" sends nothing about thinking.
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

type model struct {
	o        Options
	peer     wire.Peer
	provider string // of the thinking that this endpoint makes and takes back
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
	defer stream.Close()
	b := building{model: m, ids: wire.IDs{Turn: len(r.Messages)}, emit: emit}
	for stream.Next() {
		if err := b.event(stream.Current()); err != nil {
			return llm.Reply{}, err
		}
		if b.stopped {
			return b.reply() // what could follow is not waited for
		}
	}
	err = stream.Err()
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		err = m.peer.Event([]byte(e.RawJSON()))
	}
	return llm.Reply{}, x.Failed(ctx, err)
}
