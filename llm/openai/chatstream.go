package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"muster/llm"
	"muster/llm/internal/wire"
)

// chatReplyBuilder collects a reply of Chat Completions. The API sends text, reasoning and calls in pieces
// and without an order among them; the finished reply has the reasoning first, then the text, then the
// calls.
type chatReplyBuilder struct {
	*wire.Exchange

	name    string // of the model that answers
	text    strings.Builder
	thought strings.Builder
	field   string // the name under which thought came
	refused bool
	calls   []*callBuilder
	usage   llm.Usage
	finish  string
}

// callBuilder collects one call. Its first piece names the tool; the arguments come in further pieces.
type callBuilder struct {
	chatCall
	args strings.Builder
}

// chatPiece is a piece of a reply, or the whole of one that does not come as a stream.
type chatPiece struct {
	Content   string     `json:"content"`
	Refusal   string     `json:"refusal"`
	ReasonedA string     `json:"reasoning_content"`
	ReasonedB string     `json:"reasoning"`
	ToolCalls []chatCall `json:"tool_calls"`
}

// chatChunk is what is read of one event. All other fields are ignored, because servers add their own.
type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta        chatPiece  `json:"delta"`
		Message      *chatPiece `json:"message"` // in place of Delta where the server does not stream
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Hit int `json:"prompt_cache_hit_tokens"` // DeepSeek's name
	} `json:"usage"`
}

// Event applies a chunk. It never ends the stream, because the usage comes after the finish reason.
func (c *chatReplyBuilder) Event(data []byte) (bool, error) {
	var k chatChunk
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	c.name = cmp.Or(k.Model, c.name)
	if u := k.Usage; u != nil {
		c.usage = newUsage(u.Prompt, u.Completion, max(u.Details.Cached, u.Hit), u.Details.Written)
	}
	// A request asks for one choice, so there is at most one.
	if len(k.Choices) == 0 { // the chunk with the usage has none
		return false, nil
	}
	d := cmp.Or(k.Choices[0].Message, &k.Choices[0].Delta)
	if err := c.Keep(len(d.ReasonedA) + len(d.ReasonedB) + len(d.Content) + len(d.Refusal)); err != nil {
		return false, err
	}
	field, thought := "reasoning_content", d.ReasonedA
	if thought == "" {
		field, thought = "reasoning", d.ReasonedB
	}
	if thought != "" { // servers choose one name and keep to it
		c.field = field
		c.thought.WriteString(thought)
		c.Emit(llm.Delta{Part: 0, Think: thought})
	}
	if s := d.Content + d.Refusal; s != "" {
		c.refused = c.refused || d.Refusal != ""
		c.text.WriteString(s)
		c.Emit(llm.Delta{Part: 1, Text: s})
	}
	for _, t := range d.ToolCalls {
		if err := c.addCall(t); err != nil {
			return false, err
		}
	}
	c.finish = cmp.Or(k.Choices[0].FinishReason, c.finish)
	return false, nil
}

// addCall appends a piece of a call, or begins a new call with it. The name and the id count when they first
// come; a server that repeats them in each piece does not change them. A whole call that comes once more under its id
// is not taken for the rest of its arguments.
func (c *chatReplyBuilder) addCall(t chatCall) error {
	at, args := c.findCall(t), string(t.Function.Arguments)
	switch {
	case at == nil:
		if err := c.KeepPart(len(t.ID) + len(t.Function.Name)); err != nil {
			return err
		}
		at = &callBuilder{chatCall: t}
		at.Function.Arguments = ""
		c.calls = append(c.calls, at)
	case t.ID != "" && t.Function.Name != "" && args == at.args.String() && json.Valid([]byte(args)):
		return nil
	}
	at.Function.Name = cmp.Or(at.Function.Name, t.Function.Name)
	at.ID = cmp.Or(at.ID, t.ID)
	at.args.WriteString(args)
	return c.Keep(len(args))
}

// findCall returns the call that the piece continues, or nil if it begins a new one. The index should tell,
// but some servers give every call the index 0, or none.
func (c *chatReplyBuilder) findCall(t chatCall) *callBuilder {
	for _, at := range c.calls {
		if t.ID != "" && t.ID == at.ID {
			return at
		}
	}
	// Without a known id, the piece most probably continues the newest call.
	for _, at := range slices.Backward(c.calls) {
		if t.Index != nil && at.Index != nil && *t.Index != *at.Index {
			continue
		}
		switch {
		case t.ID != "" && at.ID != "" && t.ID != at.ID:
			return nil
		case t.ID == "" && t.Function.Name != "" && at.Function.Name != "" && json.Valid([]byte(at.args.String())):
			return nil // it was whole, and here is a name again
		}
		return at
	}
	return nil
}

// Reply returns the finished reply.
func (c *chatReplyBuilder) Reply() (r llm.Reply, ok bool, err error) {
	if c.finish == "" {
		return r, false, nil
	}
	r = llm.Reply{Usage: c.usage, Model: c.name}
	switch c.finish {
	case "length":
		r.Stop = llm.StopMax
	case "content_filter", "sensitive":
		r.Stop = llm.StopRefused
	case "insufficient_system_resource":
		return r, false, llm.Errorf(llm.Overloaded, "%s had to stop for want of resources", c.Host())
	case "error", "network_error", "abort":
		return r, false, c.ErrBroken("it ended with %q", c.finish)
	default: // some say "stop" where they mean "tool_calls"
		r.Stop = llm.StopEnd
	}
	if c.refused {
		r.Stop = llm.StopRefused
	}
	var parts []llm.Part
	if c.thought.Len() > 0 {
		// Some servers want their reasoning back with the calls that it led to, so the field's name is kept
		// with it.
		parts = append(parts, llm.Thinking{Text: c.thought.String(), Provider: c.Provider,
			Opaque: opaque{Field: c.field}.encode()})
	}
	if c.text.Len() > 0 {
		parts = append(parts, llm.Text{Text: c.text.String()})
	}
	for _, t := range c.calls {
		if t.Function.Name == "" && r.Stop == llm.StopEnd {
			return r, false, c.ErrBroken("a call has no name")
		}
		parts = append(parts, llm.Call{ID: t.ID, Name: t.Function.Name, Input: json.RawMessage(t.args.String())})
	}
	return c.Finish(r, parts)
}
