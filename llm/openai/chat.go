package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"muster/llm"
	"muster/llm/internal/wire"
)

// replyByChat answers by Chat Completions.
func (m *model) replyByChat(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	params, err := m.chatParams(r)
	if err != nil {
		return llm.Reply{}, err
	}
	return m.stream(ctx, "chat/completions", params, emit,
		&chatReplyBuilder{model: m, emit: emit, ids: wire.IDs{Turn: len(r.Messages)}})
}

// chatParams builds the request. It is a function of r alone, and a longer conversation begins with the bytes of a
// shorter one. The vendor caches the longest beginning that it has seen before, so any change in the order of messages,
// tools or keys would make every request pay for the whole conversation again.
func (m *model) chatParams(r llm.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{
		Model:         m.o.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	for _, msg := range m.chatMessages(r) {
		p.Messages = append(p.Messages, param.Override[sdk.ChatCompletionMessageParamUnion](msg))
	}
	if len(r.Messages) == 0 || len(p.Messages) == 0 {
		return p, errNothingToSend()
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, param.Override[sdk.ChatCompletionToolUnionParam](chatTool{
			Type: "function",
			Function: chatFunction{Name: t.Name, Description: t.Description,
				Parameters: orDefault(t.Schema, emptySchema)},
		}))
	}
	if m.isVendor {
		p.MaxCompletionTokens = sdk.Int(m.maxTokens(r))
	} else {
		p.MaxTokens = sdk.Int(m.maxTokens(r)) // the older name is the one that every other server knows
	}
	if r.CacheKey != "" {
		// Requests with the same key go to the same machine, whose cache then hits. Servers that do not know the newer
		// field refuse it; user is the older name for the same thing.
		if m.isVendor {
			p.PromptCacheKey = sdk.String(r.CacheKey)
		} else {
			p.User = sdk.String(r.CacheKey)
		}
	}
	if m.o.Effort != "" {
		p.ReasoningEffort = shared.ReasoningEffort(m.o.Effort)
	}
	return p, nil
}

// What a request holds, as the API wants it. The SDK has such types too, but they would sort a schema's properties,
// which changes the bytes that the cache compares, and they know nothing of reasoning that is sent back.
type (
	// chatMessage is one message of any role. The reasoning of an assistant stands under one of two names, depending on
	// the server that it came from.
	chatMessage struct {
		Role       string     `json:"role"`
		Content    any        `json:"content,omitempty"` // a string or []chatPart
		ReasonedA  string     `json:"reasoning_content,omitempty"`
		ReasonedB  string     `json:"reasoning,omitempty"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	// chatPart is a text or an image in a message that has images.
	chatPart struct {
		Type     string     `json:"type"`
		Text     string     `json:"text,omitempty"`
		ImageURL *chatImage `json:"image_url,omitempty"`
	}
	chatImage struct {
		URL string `json:"url"`
	}
	// chatCall is a call of a tool in an assistant's message.
	chatCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function chatArgs `json:"function"`
	}
	chatArgs struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON as text
	}
	// chatTool declares a tool. The schema is passed on byte for byte.
	chatTool struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// chatMessages converts the system prompt and the conversation. A message of the assistant of which nothing can be sent
// is left out, because servers refuse a message without content and without calls.
func (m *model) chatMessages(r llm.Request) (out []chatMessage) {
	if s := joinSystem(r.System); s != "" {
		out = append(out, chatMessage{Role: "system", Content: s})
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.Assistant {
			if a, ok := m.chatAssistant(msg); ok {
				out = append(out, a)
			}
			continue
		}
		out = append(out, chatUser(msg)...)
	}
	return out
}

// chatAssistant converts a reply; ok is false if nothing of it can be sent. Reasoning goes back only to the endpoint
// that made it, and under the name under which it came.
func (m *model) chatAssistant(msg llm.Message) (chatMessage, bool) {
	a := chatMessage{Role: "assistant"}
	if s := joinTexts(msg.Parts); s != "" {
		a.Content = s
	}
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			if p.Provider != m.provider {
				continue
			}
			switch reasoningField(p.Opaque) {
			case "reasoning_content":
				a.ReasonedA += p.Text
			case "reasoning":
				a.ReasonedB += p.Text
			}
		case llm.Call:
			a.ToolCalls = append(a.ToolCalls, chatCall{
				ID: p.ID, Type: "function",
				Function: chatArgs{Name: wire.Name(p.Name, 64), Arguments: string(orDefault(p.Input, emptyInput))},
			})
		}
	}
	return a, a.Content != nil || len(a.ToolCalls) > 0
}

// chatUser converts a user message: one message for each result, then one for the rest. A result can hold only text,
// so its images go into the message that follows.
func chatUser(msg llm.Message) (out []chatMessage) {
	var ofResults, rest []llm.Part
	for _, p := range msg.Parts {
		r, ok := p.(llm.Result)
		if !ok {
			rest = append(rest, p)
			continue
		}
		s := joinTexts(r.Parts)
		if shown := images(r.Parts); len(shown) > 0 {
			note := fmt.Sprintf("(%d images of this result follow)", len(shown))
			if len(shown) == 1 {
				note = "(1 image of this result follows)"
			}
			s = strings.TrimPrefix(s+"\n\n"+note, "\n\n")
			ofResults = append(ofResults, llm.Text{Text: "Images of the result of call " + r.ID + ":"})
			for _, i := range shown {
				ofResults = append(ofResults, i)
			}
		}
		out = append(out, chatMessage{Role: "tool", Content: s, ToolCallID: r.ID})
	}
	rest = append(ofResults, rest...)
	if len(images(rest)) > 0 {
		content := convertContent(rest, func(text string) chatPart { return chatPart{Type: "text", Text: text} },
			func(url string) chatPart { return chatPart{Type: "image_url", ImageURL: &chatImage{url}} })
		return append(out, chatMessage{Role: "user", Content: content})
	}
	// Many servers that imitate the API take a single string only, so a list is sent only where there are images.
	if s := joinTexts(rest); s != "" {
		out = append(out, chatMessage{Role: "user", Content: s})
	}
	return out
}

// opaqueReasoning is the Opaque of an llm.Thinking: the name of the field in which the server sent it and wants it
// back. Its JSON is stored in transcripts.
type opaqueReasoning struct {
	Field string `json:"field"`
}

// reasoningField returns that name, or "" if the thinking is not from this package.
func reasoningField(opaque json.RawMessage) string {
	var r opaqueReasoning
	_ = json.Unmarshal(opaque, &r) // what is not ours names no field
	return r.Field
}
