// Package anthropic implements llm.Model by Anthropic's Messages API, through the vendor's SDK. Another
// base URL reaches servers that imitate the API.
//
// New is the only way in. Inside, request.go turns a conversation into a request, replyBuilder turns the
// events of a stream into a reply, and thinking.go keeps thinking in the form in which the API takes it
// back. A request is a function of the conversation alone, and a longer conversation begins with the bytes
// of a shorter one, so that the vendor's cache hits. A reply is complete or an error; no part of a broken
// one is returned.
//
// The package reads nothing from the environment and never retries; package retry does.
//
// Compatibility: New and the fields of Options stay. Fields may be added.
package anthropic

import (
	"context"
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

// New returns the model that o describes. It sends nothing yet, so that mistakes in o appear in the first
// Reply.
func New(o Options) llm.Model {
	if o.MaxTokens <= 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	peer := wire.NewPeer(o.BaseURL, Endpoint, o.Model)
	opts := []option.RequestOption{
		option.WithBaseURL(wire.Base(peer.URL, "/")),
		option.WithHTTPClient(wire.Client(o.Client)),
		option.WithMaxRetries(0), // one retry policy, and it is not here
		option.WithoutOpenTelemetry(),
		option.WithOpenTelemetryPropagation(false),
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	// Not NewClient: it would look for keys in the environment and in files.
	return &model{o, peer, peer.Provider("anthropic"), sdk.Client{Options: opts}}
}

// model implements llm.Model.
type model struct {
	o        Options
	peer     wire.Peer
	provider string // marks the thinking that this endpoint made
	client   sdk.Client
}

// Reply implements llm.Model.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	body, err := m.request(r)
	if err != nil {
		return llm.Reply{}, err
	}
	x := wire.NewExchange(m.peer, r, emit)
	var res *http.Response
	err = m.client.Post(ctx, "v1/messages", body, &res, option.WithMiddleware(x.Do))
	return x.Read(ctx, res, err, &replyBuilder{Exchange: x, provider: m.provider})
}
