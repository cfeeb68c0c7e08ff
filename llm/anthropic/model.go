// Package anthropic implements llm.Model by Anthropic's Messages API. Another
// base URL reaches servers that imitate the API.
//
// New is the only way in. Inside, model.go turns a conversation into a request, replyBuilder turns the
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
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
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
	// MaxTokens limits a reply where the request does not; 0 means what is known of the model, or DefaultMaxTokens.
	MaxTokens int

	// Effort asks for thinking: low, medium, high, xhigh or max, as far as the model
	// has them. "" sends nothing about thinking.
	Effort string

	// Known is what is known of the model: its limits, and how it thinks. Of the zero Model nothing is known.
	Known catalogue.Model

	Client *http.Client // nil is one of its own; redirects are not followed

	// Header sets headers of each request, and Extra fields of its body, over those that are sent anyway. A field that
	// is null is left out.
	Header map[string]string
	Extra  map[string]json.RawMessage

	// Observe sees each answer before its body is read, and may put one in its place that reads the same. Nil: nobody
	// looks.
	Observe func(*http.Response)
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
	peer.Custom = wire.Custom{Header: o.Header, Extra: o.Extra, Observe: o.Observe}
	return &model{o: o, isLimitSet: isLimitSet, peer: peer}
}

// model implements llm.Model.
type model struct {
	o          Options
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
		most = body.MaxTokens
	}
	return m.most.Ask(body.MaxTokens, most, emit, func(limit int) (llm.Reply, bool, error) {
		body.MaxTokens = limit
		return m.ask(ctx, r, body, emit)
	})
}

// ask makes one request. isCut says that the reply was cut at its limit.
func (m *model) ask(
	ctx context.Context, r llm.Request, body *request, emit func(llm.Delta),
) (reply llm.Reply, isCut bool, err error) {
	x := wire.NewExchange(m.peer, r, emit)
	header := http.Header{}
	header.Set("Anthropic-Version", apiVersion)
	if m.o.Key != "" {
		header.Set("X-Api-Key", m.o.Key)
	}
	reply, err = x.Post(ctx, m.o.Client, wire.Endpoint(m.peer.URL, "/", "v1/messages"), header, body,
		&replyBuilder{Exchange: x})
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
	p := &request{MaxTokens: cmp.Or(max(r.MaxTokens, 0), m.o.MaxTokens), Model: m.o.Model, Stream: true}
	for _, msg := range r.Messages {
		// The API refuses a message without content. Leaving it out leaves two messages of one side in a
		// row, which it takes as one.
		if content := m.blocks(msg.Parts); len(content) > 0 {
			p.Messages = append(p.Messages, message{content, cmp.Or(msg.Role, llm.User)})
		}
	}
	if len(p.Messages) == 0 {
		return nil, llm.Errorf(llm.BadRequest, "there is nothing to send: the conversation has no message with content")
	}
	// The API has no key for the cache. The key names the conversation, and as a user's id it lets the
	// vendor tell conversations apart.
	if r.CacheKey != "" {
		p.Metadata = map[string]string{"user_id": r.CacheKey}
	}
	for _, s := range r.System {
		p.System = append(p.System, m.blocks([]llm.Part{llm.Text{Text: s}})...)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool{Name: t.Name, Description: t.Description,
			InputSchema: wire.OrDefault(t.Schema, `{"type":"object"}`)})
	}
	// The marks come last, because they depend on which messages are left, and change no other bytes.
	setCacheBreakpoints(p)
	m.setThinking(p)
	return p, nil
}

// setCacheBreakpoints marks up to where the vendor should cache. One mark goes on each part of the system
// prompt (on the last ones, if there are too many), and the first of them covers the tools. Up to two more
// go on the ends of the last user messages. The older of these is the end of the previous request; it stays
// in reach when a round of tools was longer than the API looks back.
func setCacheBreakpoints(p *request) {
	ephemeral := map[string]string{"type": "ephemeral"}
	left := maxCacheBreakpoints - 1
	for i := max(0, len(p.System)-left); i < len(p.System); i++ {
		p.System[i].CacheControl = ephemeral
		left--
	}
	if len(p.System) == 0 && len(p.Tools) > 0 {
		p.Tools[len(p.Tools)-1].CacheControl = ephemeral
		left--
	}
	// One mark is always left for the end of the conversation, which the next request begins with.
	left = min(left+1, 2)
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		if last := i == len(p.Messages)-1; !last && p.Messages[i].Role != llm.User {
			continue
		}
		blocks := p.Messages[i].Content
		for j := len(blocks) - 1; j >= 0; j-- {
			if blocks[j].Type != thinking && blocks[j].Type != redacted { // these take none
				blocks[j].CacheControl = ephemeral
				left--
				break
			}
		}
	}
}

// blocks converts the parts of a message or a result, without those that are empty or for which the API has
// no block. Names and ids that came from another vendor are brought into the form that this one accepts; a
// call and its result are changed alike, so they still belong together.
func (m *model) blocks(parts []llm.Part) (out []block) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, block{Type: "text", Text: p.Text})
			}
		case llm.Image:
			if len(p.Data) > 0 {
				out = append(out, block{Type: "image", Source: map[string]string{"type": "base64",
					"media_type": p.Media, "data": base64.StdEncoding.EncodeToString(p.Data)}})
			}
		case llm.Thinking:
			out = append(out, m.thinkingBlocks(p)...)
		case llm.Call:
			out = append(out, block{Type: "tool_use", ID: wire.Name(p.ID, 64), Name: wire.Name(p.Name, 128),
				Input: wire.OrDefault(p.Input, "{}")})
		case llm.Result:
			out = append(out, block{Type: "tool_result", ToolUseID: wire.Name(p.ID, 64), IsError: p.IsError,
				Content: m.blocks(p.Parts)})
		}
	}
	return out
}

// opaqueThinking is the Opaque of an llm.Thinking: everything of the block except its text. Its JSON is
// stored in transcripts.
type opaqueThinking struct {
	Type      string `json:"type"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// The kinds of blocks of thinking. The text of a redacted one is encrypted, and only the vendor can read it.
const (
	thinking = "thinking"
	redacted = "redacted_thinking"
)

// thinkingBlocks returns the block that p was made from, unchanged. Thinking of another endpoint, and
// thinking without a signature, is not sent.
func (m *model) thinkingBlocks(p llm.Thinking) []block {
	var s opaqueThinking
	if p.Provider != m.peer.Provider || json.Unmarshal(p.Opaque, &s) != nil {
		return nil
	}
	switch {
	case s.Type == thinking && s.Signature != "":
		return []block{{Type: thinking, Signature: s.Signature, Thinking: &p.Text}}
	case s.Type == redacted && s.Data != "":
		return []block{{Type: redacted, Data: s.Data}}
	}
	return nil
}

// setThinking asks for thinking in the form that the model takes: an effort, or for older models a budget
// of tokens, which is added to the length of the reply.
func (m *model) setThinking(p *request) {
	if m.o.Effort == "" {
		return
	}
	if hasAdaptiveThinking(m.o.Model) {
		p.Thinking = map[string]any{"type": "adaptive"}
		p.OutputConfig = map[string]string{"effort": m.o.Effort}
		return
	}
	// The older API counts the budget as part of max_tokens, so the reply would be shorter by it.
	budgets := map[string]int{"low": 2048, "high": 16384, "xhigh": 16384, "max": 16384}
	budget := cmp.Or(budgets[m.o.Effort], 4096)
	p.Thinking = map[string]any{"type": "enabled", "budget_tokens": budget}
	p.MaxTokens += budget
}

// hasAdaptiveThinking reports whether a model takes an effort. All do except claude-FAMILY-MAJOR[-MINOR]
// before 4.6 and names in the older order (claude-3-7-sonnet).
func hasAdaptiveThinking(model string) bool {
	words := strings.Split(strings.TrimPrefix(model, "claude-"), "-")
	if _, err := strconv.Atoi(words[0]); err == nil || len(words) < 2 {
		return err != nil
	}
	major, err := strconv.Atoi(words[1])
	if err != nil {
		return true
	}
	minor := 0
	if len(words) > 2 && len(words[2]) < 3 { // longer is a date
		minor, _ = strconv.Atoi(words[2])
	}
	return major > 4 || major == 4 && minor >= 6
}

// Endpoint returns the base URL that is asked. Models of one endpoint share its rate limits.
func (m *model) Endpoint() string { return m.peer.URL }
