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
// shorter one.
func (m *model) chatParams(r llm.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{
		Model:         m.o.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	for _, msg := range m.chatMessages(r) {
		p.Messages = append(p.Messages, param.Override[sdk.ChatCompletionMessageParamUnion](msg))
	}
	if len(r.Messages) == 0 || len(p.Messages) == 0 {
		return p, llm.Errorf(llm.BadRequest, "there is nothing to send: the conversation has no message with content")
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

// The shapes of the wire. The SDK's own would sort a schema's properties and know
// nothing of reasoning that is sent back.
type (
	chatMessage struct {
		Role       string     `json:"role"`
		Content    any        `json:"content,omitempty"` // a string or []chatPart
		ReasonedA  string     `json:"reasoning_content,omitempty"`
		ReasonedB  string     `json:"reasoning,omitempty"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	chatPart struct {
		Type     string     `json:"type"`
		Text     string     `json:"text,omitempty"`
		ImageURL *chatImage `json:"image_url,omitempty"`
	}
	chatImage struct {
		URL string `json:"url"`
	}
	chatCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function chatArgs `json:"function"`
	}
	chatArgs struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
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

// chatMessages converts the system prompt and the conversation.
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

// chatAssistant converts a reply; ok is false if nothing of it can be sent.
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
	var rest []llm.Part
	for _, p := range msg.Parts {
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
			rest = append(rest, llm.Text{Text: "Images of the result of call " + r.ID + ":"})
			for _, i := range shown {
				rest = append(rest, i)
			}
		}
		out = append(out, chatMessage{Role: "tool", Content: s, ToolCallID: r.ID})
	}
	for _, p := range msg.Parts {
		if _, ok := p.(llm.Result); !ok {
			rest = append(rest, p)
		}
	}
	if len(images(rest)) == 0 {
		if s := joinTexts(rest); s != "" {
			out = append(out, chatMessage{Role: "user", Content: s})
		}
		return out
	}
	var content []chatPart
	for _, p := range rest {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				content = append(content, chatPart{Type: "text", Text: p.Text})
			}
		case llm.Image:
			if len(p.Data) > 0 {
				content = append(content, chatPart{Type: "image_url", ImageURL: &chatImage{dataURL(p)}})
			}
		}
	}
	return append(out, chatMessage{Role: "user", Content: content})
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
