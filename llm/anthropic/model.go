// Package anthropic implements llm.Model by Anthropic's Messages API. Another
// base URL reaches servers that imitate the API.
//
// New is the only way in. Inside, model.go turns a conversation into a request, replyBuilder turns the
// events of a stream into a reply, and binding tells which thinking goes back. A request is a function of the
// conversation alone, and a longer conversation begins with the bytes of a shorter one, so that the vendor's
// cache hits. A reply is complete or an error; no part of a broken one is returned.
//
// The package reads nothing from the environment and never retries; package retry does.
//
// Compatibility: New and the fields of Options stay. Fields may be added.
package anthropic

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wire"
)

// Endpoint is the vendor's base URL.
const Endpoint = "https://api.anthropic.com"

// apiVersion is the version of the API that requests and replies are written in.
//
// https://docs.claude.com/en/api/versioning
const apiVersion = "2023-06-01"

// DefaultMaxTokens is the length of a reply where neither the request nor Options set one, and nothing is known of the
// model. The API has no default of its own.
const DefaultMaxTokens = 32000

// Options name the model, the server and the key. Nothing is read from the environment.
type Options struct {
	Model   string
	BaseURL string // "" is Endpoint; with or without a slash or /v1 at its end
	Key     string // sent as x-api-key; "" sends none
	// IsBearer sends the key as a bearer token in place of x-api-key.
	IsBearer bool
	// Renew is called with a key that the server refuses with 401. The request is made once more with the key that it
	// returns, if that is another one. Nil: there is no other.
	Renew func(ctx context.Context, refused string) (string, error)
	// MaxTokens limits a reply where the request does not; 0 means what is known of the model, or DefaultMaxTokens.
	MaxTokens int

	// Effort asks for thinking: minimal, low, medium, high, xhigh or max; the nearest that the model is known to have
	// is sent. "" is medium for a model that is known to think, and sends nothing for any other.
	Effort string

	// Known is what is known of the model: its limits, and how it thinks. Of the zero Model nothing is known.
	Known catalogue.Model

	Client *http.Client // nil is one of its own; redirects are not followed

	// Header sets headers of each request, and Extra fields of its body, over those that are sent anyway. A field that
	// is null is left out, and so is a temperature where the model is asked for thinking: it would be refused.
	Header map[string]string
	Extra  map[string]json.RawMessage

	// Observe sees each answer before its body is read, and may put one in its place that reads the same. Nil: nobody
	// looks.
	Observe func(*http.Response)

	// Allowed has how many requests and tokens the user allows in a minute; its other fields are ignored.
	Allowed llm.Account
}

// New returns the model that o describes. It sends nothing yet, so that mistakes in o appear in the first
// Reply.
func New(o Options) llm.Model {
	isLimitSet := o.MaxTokens > 0
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	o.MaxTokens = cmp.Or(max(o.MaxTokens, 0), o.Known.ReplyLimit(), DefaultMaxTokens)
	peer := wire.NewPeer(o.BaseURL, Endpoint, o.Model)
	peer.SetAPI("anthropic")
	peer.Window = o.Known.Window
	m := &model{o: o, key: wire.NewKey(o.Key, o.Renew), isLimitSet: isLimitSet, peer: peer,
		most: wire.Maximum{Host: peer.Host()}}
	m.peer.Custom = m.custom()
	return m
}

// custom returns what the user wants in each request, without what the model would refuse, and with the header that
// lets older models think between their calls.
func (m *model) custom() wire.Custom {
	c := wire.Custom{Header: m.o.Header, Extra: m.o.Extra, Observe: m.o.Observe}
	style, _ := m.style()
	if _, isOwn := c.Extra["thinking"]; style != catalogue.None && !isOwn {
		c.Extra = maps.Clone(c.Extra)
		delete(c.Extra, "temperature")
	}
	if style == catalogue.Budget && m.o.Known.Name != "" {
		values := []string{interleaved}
		c.Header = map[string]string{}
		for name, value := range m.o.Header {
			if name = http.CanonicalHeaderKey(name); name == betaHeader {
				values = append(values, value)
			}
			c.Header[name] = value
		}
		c.Header[betaHeader] = strings.Join(values, ",")
	}
	return c
}

// The header that switches on what is not part of the API's version, and its value for thinking between calls. Newer
// models do that without it.
const (
	betaHeader  = "Anthropic-Beta"
	interleaved = "interleaved-thinking-2025-05-14"
)

// model implements llm.Model.
type model struct {
	o          Options
	key        *wire.Key
	isLimitSet bool // by Options: replies are not longer
	peer       wire.Peer
	most       wire.Maximum
}

// Reply implements llm.Model. A reply that is cut at a limit that nobody has set is asked for again with a longer one.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	body, err := m.request(r)
	if err != nil {
		return llm.Reply{}, err
	}
	most := cmp.Or(m.o.Known.MaxOutput, wire.UnknownMost)
	if m.isLimitSet || r.MaxTokens > 0 {
		most = m.limit(body)
	}
	return m.most.Ask(m.limit(body), most, emit, func(limit int) (llm.Reply, bool, error) {
		m.setLimit(body, limit)
		return m.ask(ctx, r, body, emit)
	})
}

// ask makes one request. isCut says that the reply was cut at its limit.
func (m *model) ask(
	ctx context.Context, r llm.Request, body *request, emit func(llm.Delta),
) (reply llm.Reply, isCut bool, err error) {
	x := wire.NewExchange(m.peer, r, emit)
	reply, err = m.key.Ask(ctx, func(key string) (llm.Reply, error) {
		header := http.Header{}
		header.Set("Anthropic-Version", apiVersion)
		switch {
		case key != "" && m.o.IsBearer:
			header.Set("Authorization", "Bearer "+key)
		case key != "":
			header.Set("X-Api-Key", key)
		}
		return x.Post(ctx, m.o.Client, wire.Endpoint(m.peer.URL, "/", "v1/messages"), header, body,
			&replyBuilder{Exchange: x, bound: body.bound})
	})
	return reply, x.IsCut(reply), err
}

// maxCacheBreakpoints is how many cache breakpoints the API allows in one request.
const maxCacheBreakpoints = 4

// What a request holds, as the API wants it. The order of the fields must stay, because the vendor's cache
// compares bytes.
type (
	// request is the body of a request. Only MaxTokens, Messages, Model and Stream are always sent.
	request struct {
		MaxTokens    int               `json:"max_tokens"`
		Messages     []message         `json:"messages"`
		Model        string            `json:"model"`
		Metadata     map[string]string `json:"metadata,omitempty"`
		OutputConfig map[string]string `json:"output_config,omitempty"`
		System       []block           `json:"system,omitempty"`
		Thinking     map[string]any    `json:"thinking,omitempty"`
		Tools        []tool            `json:"tools,omitempty"`
		Stream       bool              `json:"stream"`

		wanted int    // how long the reply may be, without its thinking if that has a budget
		bound  string // what the thinking of the reply is bound to
	}
	// message is one message. System prompts are not messages here but have a field of their own.
	message struct {
		Content []block  `json:"content"`
		Role    llm.Role `json:"role"`
	}
	// block is a content block of any type. Each type uses a few of the fields.
	block struct {
		ID           string            `json:"id,omitempty"`
		ToolUseID    string            `json:"tool_use_id,omitempty"`
		IsError      bool              `json:"is_error,omitempty"`
		Text         string            `json:"text,omitempty"`
		Input        json.RawMessage   `json:"input,omitempty"`
		Name         string            `json:"name,omitempty"`
		Signature    string            `json:"signature,omitempty"`
		Thinking     *string           `json:"thinking,omitempty"` // "" too must be sent
		Data         string            `json:"data,omitempty"`
		Source       map[string]string `json:"source,omitempty"`
		CacheControl map[string]string `json:"cache_control,omitempty"`
		Content      []block           `json:"content,omitempty"`
		Type         string            `json:"type"`
	}
	// tool declares a tool. Its schema is passed on byte for byte.
	tool struct {
		InputSchema  json.RawMessage   `json:"input_schema"`
		Name         string            `json:"name"`
		Description  string            `json:"description,omitempty"`
		CacheControl map[string]string `json:"cache_control,omitempty"`
	}
)

// request builds the request. It is a function of r alone and keeps its order. A longer conversation begins
// with the bytes of a shorter one; only the cache breakpoints move.
func (m *model) request(r llm.Request) (*request, error) {
	p := &request{Model: m.o.Model, Stream: true, wanted: cmp.Or(max(r.MaxTokens, 0), m.o.MaxTokens)}
	for _, s := range r.System {
		p.System = append(p.System, m.blocks([]llm.Part{llm.Text{Text: s}})...)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool{Name: t.Name, Description: t.Description,
			InputSchema: wire.OrDefault(t.Schema, `{"type":"object"}`)})
	}
	bound := m.newBinding(p)
	for _, msg := range r.Messages {
		p.add(cmp.Or(msg.Role, llm.User), m.content(msg, bound))
	}
	if len(p.Messages) == 0 {
		return nil, llm.Errorf(llm.BadRequest, "there is nothing to send: the conversation has no message with content")
	}
	// A reply that was paused goes on. Newer models refuse a conversation that ends with their own words.
	if p.Messages[len(p.Messages)-1].Role == llm.Assistant {
		p.add(llm.User, m.content(llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Go on."}}}, bound))
	}
	p.bound = bound.here()
	// The API has no key for the cache. The agent's id, as a user's, lets the vendor tell conversations apart.
	if r.CacheKey != "" {
		p.Metadata = map[string]string{"user_id": r.CacheKey}
	}
	if style, effort := m.style(); style == catalogue.Adaptive {
		m.setEffort(p, effort)
	}
	// The marks come last, because they depend on which messages are left, and change no other bytes.
	ttl := ""
	if r.CacheLong && (m.peer.IsVendor || m.o.Known.Provider == "anthropic") { // others may not know the field
		ttl = longTTL
	}
	setCacheBreakpoints(p, ttl)
	return p, nil
}

// add adds a message. The API refuses one without content. Leaving it out leaves two messages of one side in a row,
// which it takes as one.
func (p *request) add(role llm.Role, content []block) {
	if len(content) > 0 {
		p.Messages = append(p.Messages, message{content, role})
	}
}

// content converts a message.
func (m *model) content(msg llm.Message, bound *binding) (out []block) {
	bound.places = []string{bound.here()}
	for _, p := range wire.Images(msg.Parts, m.o.Known) {
		if t, ok := p.(llm.Thinking); ok {
			out = append(out, bound.blocks(t)...)
			continue
		}
		for _, b := range m.blocks([]llm.Part{p}) {
			bound.add(msg.Role, b)
			if out = append(out, b); msg.Role == llm.Assistant {
				bound.places = append(bound.places, bound.here())
			}
		}
	}
	return out
}

// setCacheBreakpoints marks up to where the vendor should cache. The vendor finds a request's longest beginning that an
// earlier one has marked, and looks for it at each mark and up to 20 blocks before. So the marks stand
//
//   - behind the first part of the system prompt, which covers the tools: what the most agents share;
//   - behind the first part of the first message, if it has several, and else behind the system prompt: what the agents
//     of a role share;
//   - behind the last user message but one, where the previous request ended. It would not be found from the end after
//     a round of more than about ten calls;
//   - at the end.
//
// A mark never stands on thinking or on empty text, which the API refuses: user messages have none of these.
func setCacheBreakpoints(p *request, ttl string) {
	mark := map[string]string{"type": "ephemeral"}
	if ttl != "" { // all marks have the same, so that none with a longer life stands behind one with a shorter
		mark["ttl"] = ttl
	}
	switch {
	case len(p.System) > 0:
		p.System[0].CacheControl = mark
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].CacheControl = mark
	}
	if first := p.Messages[0]; first.Role == llm.User && len(first.Content) > 1 && first.Content[0].Type == "text" {
		first.Content[0].CacheControl = mark
	} else if len(p.System) > 0 {
		p.System[len(p.System)-1].CacheControl = mark
	}
	left := maxCacheBreakpoints - 2
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		if blocks := p.Messages[i].Content; p.Messages[i].Role == llm.User {
			blocks[len(blocks)-1].CacheControl = mark
			left--
		}
	}
}

// longTTL is the life of a cache that is to last an hour. Without it one lasts five minutes.
const longTTL = "1h"

// blocks converts the parts of a message or a result other than thinking, without those that are empty. Names and
// ids that came from another vendor are brought into the form that this one accepts; a call and its result are
// changed alike, so they still belong together.
func (m *model) blocks(parts []llm.Part) (out []block) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, block{Type: "text", Text: p.Text})
			}
		case llm.Image:
			out = append(out, block{Type: "image", Source: map[string]string{"type": "base64",
				"media_type": p.Media, "data": base64.StdEncoding.EncodeToString(p.Data)}})
		case llm.Call:
			out = append(out, block{Type: "tool_use", ID: wire.Name(p.ID, 64), Name: wire.Name(p.Name, 128),
				Input: wire.OrDefault(p.Input, "{}")})
		case llm.Result:
			b := block{Type: "tool_result", ToolUseID: wire.Name(p.ID, 64), Content: m.blocks(p.Parts)}
			// The API refuses an error that is empty, or has an image in it.
			isImage := func(b block) bool { return b.Type == "image" }
			if b.IsError = p.IsError && !slices.ContainsFunc(b.Content, isImage); b.IsError && len(b.Content) == 0 {
				b.Content = m.blocks([]llm.Part{llm.Text{Text: "(no output)"}})
			}
			out = append(out, b)
		}
	}
	return out
}

// Endpoint returns the base URL that is asked.
func (m *model) Endpoint() string { return m.peer.URL }

// Account returns whose limits the requests count against: those of the endpoint and the key.
func (m *model) Account() llm.Account { return m.peer.Account(m.o.Key, m.o.Allowed) }
