// Package anthropic implements llm.Model by Anthropic's Messages API. Another
// base URL reaches servers that imitate the API.
//
// New is the only way in. Inside, request.go turns a conversation into a request, replyBuilder turns the
// events of a stream into a reply, and thinkingBlocks gives thinking back in the form in which the API took it
// back. A request is a function of the conversation alone, and a longer conversation begins with the bytes
// of a shorter one, so that the vendor's cache hits. A reply is complete or an error; no part of a broken
// one is returned.
//
// The package reads nothing from the environment and never retries; package retry does.
//
// Compatibility: New and the fields of Options stay. Fields may be added.
package anthropic

import (
	"cmp"
	"context"
	"net/http"

	"muster/llm"
	"muster/llm/internal/wire"
)

// Endpoint is the vendor's base URL.
const Endpoint = "https://api.anthropic.com"

// apiVersion is the version of the API that requests and replies are written in.
//
// https://docs.claude.com/en/api/versioning
const apiVersion = "2023-06-01"

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
	o.MaxTokens = cmp.Or(max(o.MaxTokens, 0), DefaultMaxTokens)
	peer := wire.NewPeer(o.BaseURL, Endpoint, o.Model)
	peer.SetAPI("anthropic")
	return &model{o, peer}
}

// model implements llm.Model.
type model struct {
	o    Options
	peer wire.Peer
}

// Reply implements llm.Model.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	body, err := m.request(r)
	if err != nil {
		return llm.Reply{}, err
	}
	x := wire.NewExchange(m.peer, r, emit)
	header := http.Header{}
	header.Set("Anthropic-Version", apiVersion)
	if m.o.Key != "" {
		header.Set("X-Api-Key", m.o.Key)
	}
	return x.Post(ctx, m.o.Client, wire.Endpoint(m.peer.URL, "/", "v1/messages"), header, body,
		&replyBuilder{Exchange: x})
}
