package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// messagesRules are what a model of the Messages API takes and others refuse.
type messagesRules struct {
	maxTokens int
	thinking  string // the types that it takes
	efforts   string // "" is none: the field is refused
	sampling  bool   // it takes a temperature
	prefill   bool   // the conversation may end with the assistant
	isBound   bool   // its thinking holds only behind the same words
	byAccount bool   // its thinking holds only for the same key
}

// allEfforts are the levels of most models.
const allEfforts = "low medium high xhigh max"

// messagesModels are the rules by the models' names. Any other model has those of "".
//
// Sources: the vendor's pages "Troubleshooting thinking" (the table of rejected configurations), "Preserved thinking"
// and "What's new" of each model, read in the autumn of 2026.
var messagesModels = map[string]messagesRules{
	"":                 {maxTokens: 128_000, thinking: "enabled disabled", sampling: true, prefill: true},
	"claude-haiku-4-5": {maxTokens: 64_000, thinking: "enabled disabled", sampling: true, prefill: true},
	"claude-sonnet-4-6": {maxTokens: 64_000, thinking: "adaptive enabled disabled", efforts: "low medium high max",
		sampling: true},
	"claude-opus-4-8":  {maxTokens: 128_000, thinking: "adaptive disabled", efforts: allEfforts},
	"claude-sonnet-5":  {maxTokens: 128_000, thinking: "adaptive disabled", efforts: allEfforts},
	"claude-opus-5":    {maxTokens: 128_000, thinking: "adaptive disabled", efforts: allEfforts},
	"claude-fable-5-1": {maxTokens: 128_000, thinking: "adaptive", efforts: allEfforts, isBound: true},
	"claude-opus-5-5":  {maxTokens: 128_000, thinking: "adaptive", efforts: allEfforts, isBound: true},
	"claude-sonnet-5-5": {maxTokens: 128_000, thinking: "adaptive between_tools", efforts: allEfforts, isBound: true,
		byAccount: true},
	"claude-haiku-5-5": {maxTokens: 128_000, thinking: "adaptive disabled", efforts: "low medium high", isBound: true,
		byAccount: true},
}

// messagesRequest is the body of a request of the Messages API.
type messagesRequest struct {
	Model       string            `json:"model"`
	MaxTokens   int               `json:"max_tokens"`
	Temperature *float64          `json:"temperature"`
	TopK        *int              `json:"top_k"`
	Output      map[string]string `json:"output_config"`
	Thinking    *struct {
		Type    string `json:"type"`
		Budget  *int   `json:"budget_tokens"`
		Display string `json:"display"`
	} `json:"thinking"`
	System   json.RawMessage   `json:"system"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// strictMessages checks a request of the Messages API.
type strictMessages struct {
	strictCheck
	rules   messagesRules
	request messagesRequest
	account string
	marks   []string // how long each cache_control lasts, in the order in which the vendor reads them
	seals   seals
	pairs   pairs
	turn    string // the type of the first block of the assistant's turn, "" outside of one
}

// betas are the values of the header anthropic-beta that this server knows.
var betas = []string{"interleaved-thinking-2025-05-14", "thinking-binding-controls-2026-08-01"}

// CheckMessages returns what the vendor would refuse in a request of the Messages API, of which these are the header
// and the body. Thinking has a signature that a Sealer made. Beyond what the vendor refuses, it does not let a
// model read what another model, or another account, has thought: the vendor takes that and throws it away.
func CheckMessages(header http.Header, body []byte) []string {
	s := &strictMessages{account: header.Get("X-Api-Key")}
	s.fields("request", body, &s.request, "model messages max_tokens metadata stop_sequences stream system "+
		"temperature thinking tool_choice tools top_k top_p output_config cache_control")
	s.rules = rulesOf(s.request.Model)
	if header.Get("Anthropic-Version") == "" {
		s.addf("anthropic-version: header is required")
	}
	for _, beta := range strings.Split(header.Get("Anthropic-Beta"), ",") {
		if beta = strings.TrimSpace(beta); beta != "" && !slices.Contains(betas, beta) {
			s.addf("Unexpected value(s) `%s` for the `anthropic-beta` header", beta)
		}
	}
	s.settings()
	s.seals.place = newPlace(s.request)
	for i, raw := range s.request.Tools { // the vendor reads them before the system prompt
		s.tool(fmt.Sprintf("tools.%d", i), raw)
	}
	if len(s.request.System) > 0 {
		s.blocks("system", "", s.request.System, "text")
	}
	s.messages()
	if len(s.marks) > 4 {
		s.addf("A maximum of 4 blocks with cache_control may be provided. Found %d", len(s.marks))
	}
	return s.problems
}

// rulesOf returns the rules of a model.
func rulesOf(model string) messagesRules {
	if r, ok := messagesModels[model]; ok {
		return r
	}
	return messagesModels[""]
}

// settings checks what is not about the conversation.
func (s *strictMessages) settings() {
	q, rules := s.request, s.rules
	if q.MaxTokens < 1 || q.MaxTokens > rules.maxTokens {
		s.addf("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", q.MaxTokens,
			rules.maxTokens, q.Model)
	}
	isOn := q.Thinking != nil && q.Thinking.Type != "disabled"
	if q.Thinking != nil {
		t := q.Thinking
		if !slices.Contains(strings.Fields(rules.thinking), t.Type) {
			s.addf("%q is not supported for this model", "thinking.type."+t.Type)
		}
		switch {
		case (t.Budget != nil) != (t.Type == "enabled"):
			s.addf("thinking.%s: budget_tokens", t.Type)
		case t.Budget != nil && *t.Budget < 1024:
			s.addf("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case t.Budget != nil && *t.Budget >= q.MaxTokens:
			s.addf("`max_tokens` must be greater than `thinking.budget_tokens`")
		}
		isKnown := slices.Contains([]string{"", "summarized", "omitted"}, t.Display)
		if !isKnown || t.Display != "" && t.Type == "between_tools" {
			s.addf("thinking.display: %s", t.Display)
		}
	}
	if q.Temperature != nil && (!rules.sampling || isOn && *q.Temperature != 1) {
		s.addf("`temperature` may only be set to 1 when thinking is enabled")
	}
	if q.TopK != nil && (!rules.sampling || isOn) {
		s.addf("`top_k` must be unset when thinking is enabled")
	}
	for name, level := range q.Output {
		if name != "effort" || !slices.Contains(strings.Fields(rules.efforts), level) {
			s.addf("output_config.%s: %q", name, level)
		}
	}
}

// property matches the name of a property of a schema.
var property = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// tool checks a tool.
func (s *strictMessages) tool(where string, raw json.RawMessage) {
	var t struct {
		Name   string                     `json:"name"`
		Schema map[string]json.RawMessage `json:"input_schema"`
		Cache  json.RawMessage            `json:"cache_control"`
	}
	s.fields(where, raw, &t, "type name description input_schema cache_control strict")
	if !callName.MatchString(t.Name) {
		s.addf("%s.name: %q", where, t.Name)
	}
	if string(t.Schema["type"]) != `"object"` {
		s.addf("%s.input_schema.type: Input should be 'object'", where)
	}
	for _, word := range []string{"oneOf", "allOf", "anyOf"} {
		if t.Schema[word] != nil {
			s.addf("%s.input_schema: %s at the top level", where, word)
		}
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(t.Schema["properties"], &properties) // none are none
	for name := range properties {
		if !property.MatchString(name) {
			s.addf("%s.input_schema.properties: the key %q", where, name)
		}
	}
	s.mark(where, t.Cache)
}

// mark checks a mark for the cache.
func (s *strictMessages) mark(where string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var c struct{ Type, TTL string }
	s.fields(where+".cache_control", raw, &c, "type ttl")
	if c.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, c.TTL) {
		s.addf("%s.cache_control: %s", where, raw)
	}
	if c.TTL == "1h" && slices.ContainsFunc(s.marks, func(before string) bool { return before != "1h" }) {
		s.addf("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' one", where)
	}
	s.marks = append(s.marks, c.TTL)
}
