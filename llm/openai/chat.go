package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/llm"
	"muster/llm/internal/wire"
)

// What a request holds, as the API wants it. The order of the fields must stay, because the vendor's cache
// compares bytes.
type (
	// chatRequest names the limit and the cache key in two ways: the newer one is understood by the vendor
	// alone.
	chatRequest struct {
		Messages            []chatMessage     `json:"messages"`
		Model               string            `json:"model"`
		MaxCompletionTokens int               `json:"max_completion_tokens,omitempty"`
		MaxTokens           int               `json:"max_tokens,omitempty"`
		PromptCacheKey      string            `json:"prompt_cache_key,omitempty"`
		User                string            `json:"user,omitempty"`
		ReasoningEffort     string            `json:"reasoning_effort,omitempty"`
		Thinking            map[string]string `json:"thinking,omitempty"`
		EnableThinking      bool              `json:"enable_thinking,omitempty"`
		Reasoning           map[string]any    `json:"reasoning,omitempty"`
		ReasoningSplit      bool              `json:"reasoning_split,omitempty"`
		StreamOptions       map[string]bool   `json:"stream_options,omitempty"`
		Tools               []chatTool        `json:"tools,omitempty"`
		Stream              bool              `json:"stream"`
	}
	// chatMessage is one message of any role. The reasoning of an assistant stands under one of several names,
	// depending on the server that it came from.
	chatMessage struct {
		Role       string          `json:"role"`
		Content    any             `json:"content"` // a string, a list, or null where there are only calls
		ReasonedA  string          `json:"reasoning_content,omitempty"`
		ReasonedB  string          `json:"reasoning,omitempty"`
		Details    json.RawMessage `json:"reasoning_details,omitempty"`
		ToolCalls  []chatCall      `json:"tool_calls,omitempty"`
		ToolCallID string          `json:"tool_call_id,omitempty"`
	}
	// chatCall is a call of a tool in an assistant's message, or a piece of one in a stream. Only the first
	// piece must name the tool; some servers repeat the id in each.
	chatCall struct {
		Index    *int   `json:"index,omitempty"` // the server's number of the call, nil if it sends none
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string    `json:"name"`
			Arguments arguments `json:"arguments"`
		} `json:"function"`
		Extra json.RawMessage `json:"extra_content,omitempty"` // Gemini's signature of the thought behind the call
	}
	// chatTool declares a tool.
	chatTool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	// function describes a tool, for both APIs.
	function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// arguments is the input of a call: JSON as text. In a stream it is a piece of this text, or with some servers
// an object.
type arguments string

// UnmarshalJSON reads the content of a string, or an object as it stands.
func (a *arguments) UnmarshalJSON(data []byte) error {
	switch {
	case string(data) == "null":
		return nil
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(a))
	}
	*a = arguments(data)
	return nil
}

// chatRequest builds the request. It is a function of r alone, and a longer conversation begins with the
// bytes of a shorter one. The vendor caches the longest beginning that it has seen before, so any change in
// the order of messages, tools or keys would make every request pay for the whole conversation again.
func (m *model) chatRequest(r llm.Request) chatRequest {
	q := chatRequest{Messages: m.chatMessages(r), Model: m.o.Model, Stream: true}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, chatTool{"function", newFunction(t)})
	}
	if think := m.quirks.think; think != nil {
		think(&q, m.o.Known.Thinking, m.effort())
	} else {
		q.ReasoningEffort = m.effort()
	}
	if m.peer.IsVendor || m.quirks.newLimit {
		q.MaxCompletionTokens = r.MaxTokens
	} else {
		q.MaxTokens = r.MaxTokens
	}
	// Requests with the same key go to the same machine, whose cache then hits. Servers refuse fields that
	// they do not know.
	switch {
	case m.peer.IsVendor || m.quirks.cacheKey:
		q.PromptCacheKey = promptCacheKey(r)
	case !m.quirks.strict:
		q.User = r.CacheKey
	}
	if !m.quirks.noStreamOptions {
		q.StreamOptions = map[string]bool{"include_usage": true}
	}
	return q
}

// newFunction describes a tool. Its schema is passed on byte for byte; the API wants one even of a tool
// without input.
func newFunction(t llm.Spec) function {
	return function{t.Name, t.Description, wire.OrDefault(t.Schema, `{"type":"object","properties":{}}`)}
}

// chatMessages converts the system prompt and the conversation. A message of the assistant of which nothing
// can be sent is left out, because servers refuse a message without content and without calls.
func (m *model) chatMessages(r llm.Request) (out []chatMessage) {
	if s := joinSystem(r.System); s != "" {
		out = append(out, chatMessage{Role: "system", Content: s})
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.Assistant {
			out = append(out, m.chatAssistant(msg)...)
		} else {
			out = append(out, m.chatUser(msg)...)
		}
	}
	if m.quirks.bridge {
		for i := len(out) - 1; i > 0; i-- {
			if out[i].Role == "user" && out[i-1].Role == "tool" {
				out = slices.Insert(out, i, chatMessage{Role: "assistant", Content: "I have read the results."})
			}
		}
	}
	return out
}

// chatAssistant converts a reply to one message, or to none if nothing of it can be sent. Reasoning goes back
// only to the endpoint that made it, and as it came.
func (m *model) chatAssistant(msg llm.Message) []chatMessage {
	a := chatMessage{Role: "assistant"}
	text, inList := joinTexts(msg.Parts), ""
	hasContent := text != ""
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			if p.Provider != m.peer.Provider {
				continue
			}
			var k opaque
			_ = json.Unmarshal(p.Opaque, &k) // what is not ours names no field
			switch {
			case k.Field == fieldContent:
				a.ReasonedA += p.Text
			case k.Field == fieldReasoning:
				a.ReasonedB += p.Text
			case k.Field == fieldList:
				inList += p.Text
			case k.Field == fieldText && m.quirks.thoughtInText:
				text = openTag + "\n" + strings.TrimSpace(p.Text) + "\n" + closeTag + "\n\n" + text
			case k.Model == m.o.Model:
				a.Details = k.Item
			}
		case llm.Call:
			a.ToolCalls = append(a.ToolCalls, m.chatCall(p, len(a.ToolCalls) == 0))
		}
	}
	if !hasContent && len(a.ToolCalls) == 0 {
		return nil
	}
	switch {
	case inList != "":
		a.Content = []contentPart{{Type: "thinking", Thinking: []contentPart{{Type: "text", Text: inList}}},
			{Type: "text", Text: text}}[:1+min(1, len(text))]
	case text != "" || m.quirks.emptyContent:
		a.Content = text
	}
	if m.quirks.replay {
		a.ReasonedA = cmp.Or(a.ReasonedA, a.ReasonedB, " ")
		a.ReasonedB = ""
	}
	return []chatMessage{a}
}

// chatCall converts a call. What its server added goes back with it, if the same model still speaks.
func (m *model) chatCall(p llm.Call, isFirst bool) chatCall {
	c := chatCall{ID: m.callID(p.ID), Type: "function"}
	c.Function.Name, c.Function.Arguments = wire.Name(p.Name, 64), arguments(wire.Arguments(p.Input))
	var k opaque
	if json.Unmarshal(p.Opaque, &k) == nil && k.Provider == m.peer.Provider && k.Model != "" && k.Model == m.o.Model {
		c.Extra = k.Item
	} else if m.quirks.signCalls && isFirst {
		// The vendor's own word for a call that none of its models made. Only the first of a reply needs it.
		c.Extra = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)
	}
	return c
}

// noOutput stands for the content of a result that has none, which some servers refuse.
const noOutput = "(no output)"

// chatUser converts a user message: one message for each result, then one for the rest. A result can hold
// only text, so its images go into the message that follows.
func (m *model) chatUser(msg llm.Message) (out []chatMessage) {
	var rest []llm.Part
	parts := wire.Images(msg.Parts, m.o.Known)
	for _, p := range parts {
		r, ok := p.(llm.Result)
		if !ok {
			continue
		}
		s := joinTexts(r.Parts)
		if shown := images(r.Parts); len(shown) > 0 {
			note := fmt.Sprintf("(%d images of this result follow)", len(shown))
			if len(shown) == 1 {
				note = "(1 image of this result follows)"
			}
			s = strings.TrimPrefix(s+"\n\n"+note, "\n\n")
			rest = append(append(rest, llm.Text{Text: "Images of the result of call " + r.ID + ":"}), shown...)
		}
		out = append(out, chatMessage{Role: "tool", Content: cmp.Or(s, noOutput), ToolCallID: m.callID(r.ID)})
	}
	rest = append(rest, parts...) // of which the results are not looked at
	if len(images(rest)) > 0 {
		content := contentParts(rest, "text", func(url string) contentPart {
			return contentPart{Type: "image_url", ImageURL: map[string]string{"url": url}}
		})
		return append(out, chatMessage{Role: "user", Content: content})
	}
	// Many servers that imitate the API take a single string only, so a list is sent only where there are
	// images.
	if s := joinTexts(rest); s != "" {
		out = append(out, chatMessage{Role: "user", Content: s})
	}
	return out
}
