package openai

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"muster/llm/catalogue"
	"muster/llm/internal/wire"
)

// quirks are the ways in which a server deviates from what most servers of Chat Completions take. The zero quirks
// deviate in nothing.
type quirks struct {
	// emptyContent sends "" as the content of a message that has calls only. Most servers take null, which the API's
	// inventor sends; some refuse it, and some refuse a message without the field.
	emptyContent bool
	// replay sends reasoning_content with every message of the assistant. One that has none gets a space, because some
	// servers take "" for none.
	replay bool
	// thoughtInText sends reasoning that came as <think> in the text back in the text. Others cut it off anyway.
	thoughtInText bool
	// bridge puts a message of the assistant between results and what the user says.
	bridge bool
	// shortIDs makes ids of calls of nine letters and digits.
	shortIDs bool
	// signCalls marks a call that another model made, because the server wants a signature with every first call.
	signCalls bool
	// strict leaves out fields that the server does not know, and therefore refuses.
	strict bool
	// noStreamOptions does not ask for the usage. The server refuses to be asked, and may report it all the same.
	noStreamOptions bool
	// cacheKey sends prompt_cache_key, which the server knows, and not user.
	cacheKey bool
	// newLimit names the limit max_completion_tokens.
	newLimit bool
	// think sets the fields that ask for thinking; nil sets reasoning_effort.
	think func(q *chatRequest, t catalogue.Thinking, level string)
}

// byVendor are the quirks of the vendors, by their names in package catalogue.
//
// Sources: the vendors' pages on Chat Completions and tool calls, and reports of refusals to clients (hermes-agent
// 16388, kimi-cli 2141, openclaw 73417, pi 6733, openclaude 67).
var byVendor = map[string]quirks{
	"deepseek": {replay: true, think: switchOn},
	"zai":      {replay: true, think: switchOn},
	"moonshot": {replay: true, newLimit: true, cacheKey: true, think: switchOn},
	"minimax": {thoughtInText: true, newLimit: true, think: func(q *chatRequest, _ catalogue.Thinking, _ string) {
		q.ReasoningSplit = true // else the thinking stands in the text
	}},
	"qwen": {emptyContent: true, think: func(q *chatRequest, t catalogue.Thinking, _ string) {
		q.EnableThinking = t.Style == catalogue.Toggle || t.Style == catalogue.Budget
	}},
	"mistral": {bridge: true, shortIDs: true, strict: true, noStreamOptions: true},
	"xai":     {emptyContent: true, newLimit: true},
	"openrouter": {think: func(q *chatRequest, t catalogue.Thinking, level string) {
		switch {
		case level != "":
			q.Reasoning = map[string]any{"effort": level}
		case t.Style != catalogue.None:
			q.Reasoning = map[string]any{"enabled": true}
		}
	}},
	"gemini": {signCalls: true, strict: true},
}

// switchOn asks for thinking as DeepSeek, Z.ai and Moonshot have it: a switch, and a level where the model has some.
func switchOn(q *chatRequest, t catalogue.Thinking, level string) {
	if t.Style != catalogue.None && t.Style != catalogue.Fixed {
		q.Thinking = map[string]string{"type": "enabled"}
	}
	q.ReasoningEffort = level
}

// quirksOf returns the quirks of a server and a model. Those of the model have the names in catalogue.Quirks.
func quirksOf(m catalogue.Model) quirks {
	q := byVendor[m.Provider]
	for name, field := range map[string]*bool{"empty-content": &q.emptyContent, "replay-reasoning": &q.replay,
		"think-tags": &q.thoughtInText, "answer-results": &q.bridge, "short-ids": &q.shortIDs,
		"sign-calls": &q.signCalls, "few-fields": &q.strict, "no-stream-options": &q.noStreamOptions,
		"max-completion-tokens": &q.newLimit, "prompt-cache-key": &q.cacheKey} {
		*field = *field || slices.Contains(m.Quirks, name)
	}
	q.replay = q.replay || m.Thinking.Replay && m.Provider != "openrouter" // which has reasoning_details
	return q
}

// byDefault is the effort of a model that thinks, where the user names none.
const byDefault = "medium"

// effort returns the level of reasoning to ask for, or "" to ask for none. A model of which nothing is known gets what
// the user wants, unchanged, and otherwise nothing.
func (m *model) effort() string {
	if m.o.Known.Thinking.Style == catalogue.None {
		return m.o.Effort
	}
	return m.o.Known.Thinking.Level(cmp.Or(m.o.Effort, byDefault))
}

// callID returns the id of a call as the server takes it. A call and its result are changed alike.
func (m *model) callID(id string) string {
	if m.peer.IsVendor {
		return wire.Name(id, maxCallID)
	}
	isShort := len(id) == 9 && strings.Trim(id, letters) == ""
	if !m.quirks.shortIDs || isShort {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9)
	for i := range short {
		short[i] = letters[int(sum[i])%len(letters)]
	}
	return string(short)
}

// maxCallID is the length of the longest id of a call that the vendor takes on Chat Completions.
const maxCallID = 40

// letters are what a short id is made of.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
