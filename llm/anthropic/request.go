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

// maxCacheBreakpoints is how many cache breakpoints the API allows in one request.
const maxCacheBreakpoints = 4

// params builds the request. It is a function of r alone and keeps its order. A longer conversation begins with the
// bytes of a shorter one; only the cache breakpoints move.
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
	// The API has no key for the cache. The key names the conversation, and as a user's id it lets the vendor tell
	// conversations apart.
	if r.CacheKey != "" {
		p.Metadata.UserID = sdk.String(r.CacheKey)
	}
	for _, s := range r.System {
		if strings.TrimSpace(s) != "" { // the API refuses empty blocks
			p.System = append(p.System, sdk.TextBlockParam{Text: s})
		}
	}
	for _, t := range r.Tools {
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: inputSchema(t.Schema)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	setCacheBreakpoints(&p)
	m.setThinking(&p)
	return p, nil
}

// inputSchema passes on a tool's schema byte for byte. The SDK's type would sort its properties, and the vendor's cache
// compares bytes.
func inputSchema(s json.RawMessage) sdk.ToolInputSchemaParam {
	if len(s) == 0 {
		s = json.RawMessage(`{"type":"object"}`)
	}
	return param.Override[sdk.ToolInputSchemaParam](s)
}

// setCacheBreakpoints marks up to where the vendor should cache. One mark goes on each part of the system prompt (on
// the last ones, if there are too many), and the first of them covers the tools. Up to two more go on the ends of the
// last user messages. The older of these is the end of the previous request; it stays in reach when a round of tools
// was longer than the API looks back.
func setCacheBreakpoints(p *sdk.MessageNewParams) {
	ephemeral := sdk.NewCacheControlEphemeralParam()
	left := maxCacheBreakpoints - 1
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

// messagesOf converts the conversation. It leaves out messages without content, which the API refuses.
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

// block converts one part; ok is false if the API has no block for it. Names and ids that came from another vendor are
// brought into the form that this one accepts; a call and its result are changed alike, so they still belong together.
func (m *model) block(p llm.Part) (sdk.ContentBlockParamUnion, bool) {
	switch p := p.(type) {
	case llm.Text:
		return sdk.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != ""
	case llm.Image:
		return sdk.ContentBlockParamUnion{OfImage: imageBlock(p)}, len(p.Data) > 0
	case llm.Thinking:
		return m.thinkingBlock(p)
	case llm.Call:
		return sdk.ContentBlockParamUnion{OfToolUse: &sdk.ToolUseBlockParam{
			ID:    wire.Name(p.ID, 64),
			Name:  wire.Name(p.Name, 128),
			Input: orEmptyObject(p.Input),
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
					b.Content = append(b.Content,
						sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: part.Text}})
				}
			case llm.Image:
				if len(part.Data) > 0 {
					b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfImage: imageBlock(part)})
				}
			}
		}
		return sdk.ContentBlockParamUnion{OfToolResult: b}, true
	}
	return sdk.ContentBlockParamUnion{}, false
}

// imageBlock converts an image.
func imageBlock(p llm.Image) *sdk.ImageBlockParam {
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		MediaType: sdk.Base64ImageSourceMediaType(p.Media),
		Data:      base64.StdEncoding.EncodeToString(p.Data),
	}}}
}

// orEmptyObject returns the input of a call, which the API wants even if it is empty.
func orEmptyObject(in json.RawMessage) json.RawMessage {
	if len(in) == 0 {
		return json.RawMessage("{}")
	}
	return in
}
