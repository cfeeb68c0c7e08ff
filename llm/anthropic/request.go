package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"muster/llm"
	"muster/llm/internal/wire"
)

// breakpoints is how many cache breakpoints the API takes in one request.
const breakpoints = 4

// params is the request on the wire. Everything in it is a function of r alone
// and in r's order, and a longer conversation begins with the bytes of a shorter
// one: only the cache breakpoints move.
func (m *model) params(r llm.Request) (sdk.MessageNewParams, error) {
	most := r.MaxTokens
	if most <= 0 {
		most = m.o.MaxTokens
	}
	p := sdk.MessageNewParams{
		Model:     m.o.Model,
		MaxTokens: int64(most),
		Messages:  m.messagesOf(r.Messages),
	}
	if len(p.Messages) == 0 {
		return p, llm.Errorf(llm.BadRequest, "there is nothing to send: the conversation has no message with content")
	}
	if r.CacheKey != "" {
		p.Metadata.UserID = sdk.String(r.CacheKey)
	}
	for _, s := range r.System {
		if strings.TrimSpace(s) != "" { // the API refuses empty blocks
			p.System = append(p.System, sdk.TextBlockParam{Text: s})
		}
	}
	for _, t := range r.Tools {
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: schema(t.Schema)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	mark(&p)
	m.think(&p)
	return p, nil
}

// schema passes a tool's schema on as the bytes that it is.
func schema(s json.RawMessage) sdk.ToolInputSchemaParam {
	if len(s) == 0 {
		s = json.RawMessage(`{"type":"object"}`)
	}
	return param.Override[sdk.ToolInputSchemaParam](s)
}

// mark sets the cache breakpoints: on each part of the system prompt (the last
// ones, if there are too many; the first covers the tools before it), and with
// what is left on the ends of the last user messages. Two of these, where two are
// left: the older is the end of the request before this one, and stays in reach
// when a round of tools was longer than the API looks back.
func mark(p *sdk.MessageNewParams) {
	ephemeral := sdk.NewCacheControlEphemeralParam()
	left := breakpoints - 1
	for i := max(0, len(p.System)-left); i < len(p.System); i++ {
		p.System[i].CacheControl = ephemeral
		left--
	}
	if len(p.System) == 0 && len(p.Tools) > 0 {
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = ephemeral
		left--
	}
	left = min(left+1, 2)
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		if last := i == len(p.Messages)-1; !last && p.Messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		blocks := p.Messages[i].Content
		for j := len(blocks) - 1; j >= 0; j-- {
			if c := blocks[j].GetCacheControl(); c != nil { // thinking takes none
				*c = ephemeral
				left--
				break
			}
		}
	}
}

func (m *model) messagesOf(ms []llm.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, msg := range ms {
		var blocks []sdk.ContentBlockParamUnion
		for _, p := range msg.Parts {
			if b, ok := m.block(p); ok {
				blocks = append(blocks, b)
			}
		}
		// The API refuses a message without content. Leaving it out leaves two
		// messages of one side in a row, which it takes as one.
		if len(blocks) == 0 {
			continue
		}
		role := sdk.MessageParamRoleUser
		if msg.Role == llm.Assistant {
			role = sdk.MessageParamRoleAssistant
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	return out
}

// block is p on the wire; false if it is nothing that this API takes.
func (m *model) block(p llm.Part) (sdk.ContentBlockParamUnion, bool) {
	switch p := p.(type) {
	case llm.Text:
		return sdk.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != ""
	case llm.Image:
		return sdk.ContentBlockParamUnion{OfImage: image(p)}, len(p.Data) > 0
	case llm.Thinking:
		return m.sealed(p)
	case llm.Call:
		return sdk.ContentBlockParamUnion{OfToolUse: &sdk.ToolUseBlockParam{
			ID:    wire.Name(p.ID, 64),
			Name:  wire.Name(p.Name, 128),
			Input: object(p.Input),
		}}, true
	case llm.Result:
		b := &sdk.ToolResultBlockParam{ToolUseID: wire.Name(p.ID, 64)}
		if p.IsError {
			b.IsError = sdk.Bool(true)
		}
		for _, part := range p.Parts {
			switch part := part.(type) {
			case llm.Text:
				if strings.TrimSpace(part.Text) != "" {
					b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: part.Text}})
				}
			case llm.Image:
				if len(part.Data) > 0 {
					b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image(part)})
				}
			}
		}
		return sdk.ContentBlockParamUnion{OfToolResult: b}, true
	}
	return sdk.ContentBlockParamUnion{}, false
}

func image(p llm.Image) *sdk.ImageBlockParam {
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		MediaType: sdk.Base64ImageSourceMediaType(p.Media),
		Data:      base64.StdEncoding.EncodeToString(p.Data),
	}}}
}

func object(in json.RawMessage) json.RawMessage {
	if len(in) == 0 {
		return json.RawMessage("{}")
	}
	return in
}
