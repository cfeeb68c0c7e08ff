// Package openai implements llm.Model by OpenAI's Responses API or by Chat Completions. Most other servers speak
// Chat Completions: Ollama, llama.cpp, vLLM, DeepSeek and many more. Each deviates in details, which are handled
// here and not in front of it.
//
// New is the only way in. For each API there is one file that builds requests (responses.go, chat.go) and one that
// reads streams (responsestream.go, chatstream.go); model.go has what both need. A request is a function of
// the conversation alone, and a longer conversation begins with the bytes of a shorter one, so that the vendor's
// cache hits. A reply is complete or an error.
//
// The package reads nothing from the environment and never retries; package retry does. It stores nothing at the
// vendor's.
//
// Compatibility: New, the APIs and the fields of Options stay. Fields may be added.
package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/internal/wire"
)

// Endpoint is the vendor's base URL.
const Endpoint = "https://api.openai.com/v1/"

// API is one of the two protocols.
type API string

// The protocols. Most servers other than the vendor's speak Chat only.
const (
	// Auto is Responses at the vendor's endpoint and Chat at any other.
	Auto API = ""
	// Chat is Chat Completions. The vendor's models that take no tools there are asked by Responses.
	Chat API = "chat"
	// Responses is the Responses API, with nothing stored at the vendor's.
	Responses API = "responses"
)

// Options name the model, the server and the key. Nothing is read from the environment.
type Options struct {
	Model   string
	BaseURL string // "" is Endpoint; with or without a slash or /v1 at its end
	Key     string // sent as a bearer token; "" sends none
	// Renew is called with a key that the server refuses with 401. The request is made once more with the key that it
	// returns, if that is another one. Nil: there is no other.
	Renew     func(ctx context.Context, refused string) (string, error)
	API       API
	MaxTokens int // of a reply, for requests that do not say; 0 is as many as the model allows

	// Effort asks for reasoning: minimal, low, medium, high, xhigh or max; the nearest that the model is known to have
	// is sent. "" is medium for a model that is known to think, and sends nothing for any other.
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

	// Allowed has how many requests and tokens the user allows in a minute; its other fields are ignored.
	Allowed llm.Account
}

// New returns the model that o describes. It sends nothing yet, so that mistakes in o appear in the first
// Reply.
func New(o Options) llm.Model {
	peer := wire.NewPeer(o.BaseURL, Endpoint, o.Model)
	if o.API == Auto {
		o.API = Chat
		if peer.IsVendor {
			o.API = Responses
		}
	}
	// These models take no tools with reasoning on Chat Completions.
	if peer.IsVendor && strings.HasPrefix(o.Model, "gpt-6") {
		o.API = Responses
	}
	// The vendor allows as much as the model can when no limit is sent, and so does most local software.
	// Other vendors cut a reply early then.
	isLimitSet := o.MaxTokens > 0
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	if o.MaxTokens = max(o.MaxTokens, 0); !peer.IsVendor {
		o.MaxTokens = cmp.Or(o.MaxTokens, o.Known.ReplyLimit())
	}
	peer.SetAPI("openai-" + string(o.API))
	peer.SetMaker(o.Key)
	peer.Window = o.Known.Window
	peer.Custom = wire.Custom{Header: o.Header, Extra: o.Extra, Observe: o.Observe}
	return &model{o: o, key: wire.NewKey(o.Key, o.Renew), isLimitSet: isLimitSet, peer: peer, quirks: quirksOf(o.Known),
		most: wire.Maximum{Host: peer.Host()}}
}

// model implements llm.Model.
type model struct {
	o          Options
	key        *wire.Key
	isLimitSet bool // by Options: replies are not longer
	peer       wire.Peer
	quirks     quirks
	most       wire.Maximum
}

// Reply implements llm.Model. A reply that is cut at a limit that nobody has set is asked for again with a longer one.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	isLimitSet := m.isLimitSet || r.MaxTokens > 0
	r.MaxTokens = cmp.Or(max(r.MaxTokens, 0), m.o.MaxTokens)
	most := cmp.Or(m.o.Known.MaxOutput, wire.UnknownMost)
	if m.o.Known.MaxOutput > 0 {
		r.MaxTokens = min(r.MaxTokens, most) // servers refuse more
	}
	if isLimitSet {
		most = r.MaxTokens
	}
	return m.most.Ask(r.MaxTokens, most, emit, func(limit int) (llm.Reply, bool, error) {
		r.MaxTokens = limit
		return m.ask(ctx, r, emit)
	})
}

// ask makes one request. isCut says that the reply was cut at its limit.
func (m *model) ask(
	ctx context.Context, r llm.Request, emit func(llm.Delta),
) (reply llm.Reply, isCut bool, err error) {
	x := wire.NewExchange(m.peer, r, emit)
	// Both APIs are asked in the same way. They differ in the body and in how the stream is read.
	path, body, hasContent := "chat/completions", any(nil), false
	var to wire.Reader
	if m.o.API == Responses {
		q := m.responsesRequest(r)
		path, body, hasContent = "responses", q, len(q.Input) > 0
		to = &responseBuilder{Exchange: x}
	} else {
		q := m.chatRequest(r)
		body, hasContent = q, len(r.Messages) > 0 && len(q.Messages) > 0
		to = &chatReplyBuilder{Exchange: x}
	}
	if !hasContent { // every server would refuse it
		return llm.Reply{}, false, llm.Errorf(llm.BadRequest,
			"there is nothing to send: the conversation has no message with content")
	}
	reply, err = m.key.Ask(ctx, func(key string) (llm.Reply, error) {
		header := http.Header{}
		if key != "" {
			header.Set("Authorization", "Bearer "+key)
		}
		return x.Post(ctx, m.o.Client, wire.Endpoint(m.peer.URL, "/v1/", path), header, body, to)
	})
	return reply, x.IsCut(reply), err
}

// contentPart is a text or an image in a message, in the form of either API.
type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
	ImageURL any    `json:"image_url,omitempty"`

	Thinking []contentPart `json:"thinking,omitempty"`
}

// contentParts converts the texts and the images of ps, which image makes of data URLs, in their order. It
// leaves out blank ones, which servers refuse, and all other parts.
func contentParts(ps []llm.Part, textType string, image func(url string) contentPart) (out []contentPart) {
	for _, p := range ps {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, contentPart{Type: textType, Text: p.Text})
			}
		case llm.Image:
			if len(p.Data) > 0 {
				out = append(out, image("data:"+p.Media+";base64,"+base64.StdEncoding.EncodeToString(p.Data)))
			}
		}
	}
	return out
}

// newUsage returns the usage of a reply. The API counts the tokens of the cache among those of the prompt,
// and llm.Usage counts them apart.
func newUsage(prompt, output, cacheRead, cacheWrite int) llm.Usage {
	return llm.Usage{
		Input:      max(prompt-cacheRead-cacheWrite, 0), // servers that imitate the API may count otherwise
		Output:     output,
		CacheRead:  cacheRead,
		CacheWrite: cacheWrite,
	}
}

// maxCacheKey is the length of the longest prompt_cache_key that the vendor takes.
const maxCacheKey = 64

// promptCacheKey returns the key of those who share the beginning of the request: requests with the same key go to the
// same machines, whose cache then hits.
func promptCacheKey(r llm.Request) string {
	if key := r.Group(); len(key) <= maxCacheKey {
		return key
	}
	return wire.Name(r.Group(), maxCacheKey)
}

// joinTexts joins the texts of ps. Most servers that imitate the API take a single string.
func joinTexts(ps []llm.Part) string {
	var out []string
	for _, p := range ps {
		if t, ok := p.(llm.Text); ok && strings.TrimSpace(t.Text) != "" {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n\n")
}

// joinSystem joins the system prompt. The chat templates of many local models refuse a second system message.
func joinSystem(parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

// images returns the images of ps that have data. Where there is one, content must be sent as a list and not
// as a string.
func images(ps []llm.Part) (out []llm.Part) {
	for _, p := range ps {
		if i, ok := p.(llm.Image); ok && len(i.Data) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// opaque is the Opaque of an llm.Thinking or an llm.Call. Its JSON is stored in transcripts, so its field names
// must stay.
//
// Of Chat Completions it holds the name of the field in which the server sent its reasoning and wants it back, or what
// only the same model may get back, with its name: reasoning_details as they came, or what came with a call.
// Of Responses it holds an item as it came, with who made it, or the phase of the message that follows. The vendor
// takes reasoning back only unchanged, from the account that it was encrypted for, and together with the item that it
// led to, so both are kept.
type opaque struct {
	Field    string          `json:"field,omitempty"`
	Provider string          `json:"provider,omitempty"` // a Call has no field for it
	Model    string          `json:"model,omitempty"`
	Maker    string          `json:"maker,omitempty"` // as wire.Peer has it; "" in transcripts of older versions
	Item     json.RawMessage `json:"item,omitempty"`
	Phase    string          `json:"phase,omitempty"`
}

// encode returns the JSON of k. It cannot fail, because an item was parsed before it is kept.
func (k opaque) encode() json.RawMessage {
	b, _ := json.Marshal(k)
	return b
}

// Endpoint returns the base URL that is asked.
func (m *model) Endpoint() string { return m.peer.URL }

// Account returns whose limits the requests count against: those of the endpoint and the key.
func (m *model) Account() llm.Account { return m.peer.Account(m.o.Key, m.o.Allowed) }
