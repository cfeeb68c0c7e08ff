// Package catalogue says what models can do and what they cost: window, longest reply, thinking, images, prices.
//
// Lookup finds a model by the endpoint that serves it and by its name. The figures are in models.json, a line for each
// model, with their source and the date on which they were true. A model that is not in it has the zero Model, and
// whoever asks must then send as little as possible.
//
// The package sends nothing and decides nothing. It keeps no figure of the user's: their settings stand over it.
package catalogue

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/llm"
)

// Model is what is known of a model. A zero field is unknown.
type Model struct {
	Provider  string   `json:"provider"` // the endpoint, as names begin with it: anthropic, openai, gemini
	Name      string   `json:"name"`
	Window    int      `json:"window,omitempty"`     // tokens of a request and its reply
	MaxOutput int      `json:"max_output,omitempty"` // tokens of a reply, thinking included
	Thinking  Thinking `json:"thinking,omitzero"`
	Images    bool     `json:"images,omitempty"` // it takes images; false also means unknown
	Prices    []Price  `json:"prices,omitempty"`
	// Quirks are ways in which the model's server deviates from others beside what is known of its vendor.
	Quirks []string `json:"quirks,omitempty"`
	Source string   `json:"source"`
	Date   string   `json:"date"` // year, month and maybe day
}

// Quirks are the names that a quirk can have. Package openai says what each of them does.
var Quirks = []string{"empty-content", "replay-reasoning", "think-tags", "answer-results", "short-ids", "sign-calls",
	"few-fields", "no-stream-options", "max-completion-tokens", "prompt-cache-key"}

// ReplyLimit returns the longest reply to ask for when nobody names a limit, or 0 if it is unknown. It is at most a
// quarter of the window: many servers count it as a part of the window, and refuse a conversation that leaves less.
func (m Model) ReplyLimit() int {
	if m.Window > 0 {
		return min(m.MaxOutput, m.Window/4)
	}
	return m.MaxOutput
}

// Style is the form in which a model is asked for thinking.
type Style string

// The styles.
const (
	// None is a model that does not think, or of which nothing is known. It is asked for nothing.
	None Style = ""
	// Adaptive thinks as much as it needs, guided by an effort.
	Adaptive Style = "adaptive"
	// Budget has a number of tokens for thinking.
	Budget Style = "budget"
	// Effort has a level and nothing else.
	Effort Style = "effort"
	// Toggle is switched on, and may have a level too.
	Toggle Style = "toggle"
	// Fixed thinks without being asked, and takes no parameter.
	Fixed Style = "fixed"
)

// Thinking says how a model thinks.
type Thinking struct {
	Style   Style    `json:"style,omitempty"`
	Efforts []string `json:"efforts,omitempty"` // the levels that it takes, the lowest first; "none" is none of them
	Always  bool     `json:"always,omitempty"`  // it cannot be switched off
	// Replay is true where the model wants its reasoning back with every message of the conversation.
	Replay bool `json:"replay,omitempty"`
}

// Level returns the level to ask for when the user wants this effort: the nearest one that the model has, the higher of
// two. It is "" for a model that has none.
func (t Thinking) Level(effort string) string {
	wanted := slices.Index(levels, effort)
	best, distance := "", len(levels)+1
	for _, e := range t.Efforts {
		at := slices.Index(levels, e)
		if d := max(at-wanted, wanted-at); at >= 0 && wanted >= 0 && d <= distance {
			best, distance = e, d
		}
	}
	return best
}

// levels are all levels of effort, the lowest first.
var levels = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// Price is what a million tokens cost in US dollars, from a date on and above a size of the request.
type Price struct {
	From       string  `json:"from,omitempty" yaml:"-"`  // YYYY-MM-DD; "" is always
	Above      int     `json:"above,omitempty" yaml:"-"` // tokens of the request
	When       string  `json:"when,omitempty" yaml:"-"`  // a condition that only the vendor knows, such as "peak hours"
	Input      float64 `json:"input" yaml:"input"`
	Output     float64 `json:"output" yaml:"output"`
	CacheRead  float64 `json:"cache_read,omitempty" yaml:"cache_read"`
	CacheWrite float64 `json:"cache_write,omitempty" yaml:"cache_write"`
	// CacheWriteLong is the price of what a cache keeps for an hour; 0 is twice that of input, as all vendors have it
	// that offer such a cache.
	CacheWriteLong float64 `json:"cache_write_long,omitempty" yaml:"cache_write_long"`
}

// PriceAt returns the price of a request of so many tokens. Where a condition cannot be known, it is the highest that
// it may be. ok is false when no price is known.
func (m Model) PriceAt(tokens int, at time.Time) (p Price, ok bool) {
	day := at.UTC().Format(time.DateOnly)
	for _, q := range m.Prices {
		if q.From <= day && q.Above <= tokens {
			p, ok = q, true // later entries are the narrower ones
		}
	}
	return p, ok
}

// Cost returns what a reply cost in US dollars. Where the catalogue has no price for what a cache read or wrote, that
// counts as input. ok is false when no price is known.
func (m Model) Cost(u llm.Usage, at time.Time) (dollars float64, ok bool) {
	p, ok := m.PriceAt(u.Prompt(), at)
	sum := float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*cmp.Or(p.CacheRead, p.Input) + float64(u.CacheWrite)*cmp.Or(p.CacheWrite, p.Input) +
		float64(u.CacheWriteLong)*cmp.Or(p.CacheWriteLong, 2*p.Input)
	return sum / 1e6, ok
}

//go:embed models.json
var embedded string

// All returns the models in the order of the file. The caller must not change them.
var All = sync.OnceValue(func() []Model {
	var all []Model
	if err := json.Unmarshal([]byte(embedded), &all); err != nil {
		panic(err) // a test reads the file
	}
	return all
})

// Lookup returns what is known of a model at an endpoint. A date at the end of the name, "-latest", and the vendor that
// a router puts in front are left out if the whole name is not known.
func Lookup(provider, name string) (Model, bool) {
	for _, n := range []string{name, suffix().ReplaceAllString(name, "")} {
		if m, ok := find(provider, n); ok {
			return m, true
		}
	}
	// openrouter/anthropic/claude-opus-5:thinking
	vendor, model, ok := strings.Cut(name, "/")
	if !ok {
		return Model{}, false
	}
	model, _, _ = strings.Cut(model, ":")
	m, ok := find(vendors[vendor], model)
	if !ok {
		m, ok = find(vendor, model)
	}
	m.Provider, m.Name = provider, name
	return m, ok
}

// suffix matches what a vendor puts behind the name of a model to say which edition it is.
var suffix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-(latest|\d{8}|\d{4}-\d{2}-\d{2})$`) })

// vendors are the names of vendors that differ from those of their endpoints.
var vendors = map[string]string{"google": "gemini", "moonshotai": "moonshot", "alibaba": "qwen", "z-ai": "zai",
	"x-ai": "xai", "mistralai": "mistral"}

// find returns the entry with just this name. Each entry is a line, and only that of the name is decoded: a run looks
// up one model before its first request.
func find(provider, name string) (m Model, ok bool) {
	head := fmt.Sprintf(`{"provider":%q,"name":%q,`, provider, name)
	for line := range strings.Lines(embedded) {
		if len(line) > len(head) && strings.EqualFold(line[:len(head)], head) {
			err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(line), ",")), &m)
			return m, err == nil // a test reads every line
		}
	}
	return Model{}, false
}
