package team

import (
	"context"
	"encoding/json"

	"muster"
	"muster/internal/transcript"
	"muster/llm"
)

// ToolCall is one call of a tool in a member's conversation, whole. Its texts are a model's and a tool's, and may hold
// anything.
type ToolCall struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
	// Output is what the tool has answered, as text; HasEnded says that it has answered.
	Output   string `json:"output"`
	HasEnded bool   `json:"has_ended"`
	// IsError says that the tool has failed.
	IsError bool `json:"is_error,omitempty"`
}

// Call returns a call in a member's conversation by its id, which the events of tools have. The error is NotFound where
// the conversation does not have it.
func (s Members) Call(ctx context.Context, name muster.Name, id string) (c ToolCall, err error) {
	isFound := false
	for e, err := range transcript.Read(ctx, s.t.services().Store().Log(), name, 0) {
		if err != nil || e.Message == nil { // what cannot be read is named by muster doctor
			continue
		}
		for _, p := range e.Message.Parts {
			switch p := p.(type) {
			case llm.Call:
				if p.ID == id {
					c, isFound = ToolCall{Tool: p.Name, Input: p.Input}, true
				}
			case llm.Result:
				if p.ID == id && isFound {
					c.Output, c.HasEnded, c.IsError = p.Text(), true, p.IsError
				}
			}
		}
	}
	if !isFound {
		return c, muster.Errorf(muster.NotFound, "the conversation of %s does not have that call of a tool", name)
	}
	return c, nil
}
