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
	thought thought
	tags    thinkTags
	refused bool
	calls   []*callBuilder
	usage   llm.Usage
	finish  string
}

// callBuilder collects one call. Its first piece names the tool; the arguments come in further pieces.
type callBuilder struct {
	chatCall
	args strings.Builder

	// What follows args in JSON, kept up to date with each piece: to parse all of them at each one takes hours.
	depth               int
	inString, isEscaped bool
	isWhole             bool // args are a JSON object or list, and nothing follows it
}

// addArgs appends a piece of the arguments.
func (b *callBuilder) addArgs(piece string) {
	b.args.WriteString(piece)
	for _, c := range []byte(piece) {
		switch {
		case b.isEscaped:
			b.isEscaped = false
		case b.inString:
			b.isEscaped, b.inString = c == '\\', c != '"'
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
		b.isWhole = b.depth == 0 && (c == '}' || c == ']' || b.isWhole && c <= ' ')
	}
}

// chatPiece is a piece of a reply, or the whole of one that does not come as a stream.
type chatPiece struct {
	Content   flexible                     `json:"content"`
	Refusal   string                       `json:"refusal"`
	ReasonedA string                       `json:"reasoning_content"`
	ReasonedB string                       `json:"reasoning"`
	Details   []map[string]json.RawMessage `json:"reasoning_details"`
	ToolCalls []chatCall                   `json:"tool_calls"`
}

// chatChunk is what is read of one event. All other fields are ignored, because servers add their own.
type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta        chatPiece  `json:"delta"`
		Message      *chatPiece `json:"message"` // in place of Delta where the server does not stream
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"` // raw, so that a report in a form that is not known does not fail the reply
}

// chatUsage is what is read of the usage.
type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // DeepSeek's name
}

// Event applies a chunk. It never ends the stream, because the usage comes after the finish reason.
func (c *chatReplyBuilder) Event(data []byte) (bool, error) {
	var k chatChunk
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	c.name = cmp.Or(k.Model, c.name)
	var u *chatUsage
	if _ = json.Unmarshal(k.Usage, &u); u != nil {
		c.usage = newUsage(u.Prompt, u.Completion, max(u.Details.Cached, u.Hit), u.Details.Written)
	}
	// A request asks for one choice, so there is at most one.
	if len(k.Choices) == 0 { // the chunk with the usage has none
		return false, nil
	}
	d := cmp.Or(k.Choices[0].Message, &k.Choices[0].Delta)
	if err := c.addText(d); err != nil {
		return false, err
	}
	for _, t := range d.ToolCalls {
		if err := c.addCall(t); err != nil {
			return false, err
		}
	}
	c.finish = cmp.Or(k.Choices[0].FinishReason, c.finish)
	return false, nil
}

// addText appends the text and the reasoning of a piece.
func (c *chatReplyBuilder) addText(d *chatPiece) error {
	size := len(d.ReasonedA) + len(d.ReasonedB) + len(d.Content.text) + len(d.Content.think) + len(d.Refusal)
	for _, detail := range d.Details {
		for name, value := range detail {
			size += len(name) + len(value)
		}
	}
	if err := c.Keep(size); err != nil {
		return err
	}
	// Servers choose one name and keep to it, or say the same in the details and beside them.
	field, thought := fieldContent, d.ReasonedA
	if thought == "" {
		field, thought = fieldReasoning, d.ReasonedB
	}
	if inDetails := c.thought.addDetails(d.Details); thought == "" {
		thought = inDetails
	}
	if thought == "" && d.Content.think != "" {
		field, thought = fieldList, d.Content.think
	}
	tagged, text := c.tags.split(d.Content.text)
	if thought == "" && tagged != "" {
		field, thought = fieldText, tagged
	}
	if thought != "" {
		c.think(field, thought)
	}
	c.refused = c.refused || d.Refusal != ""
	c.say(text + d.Refusal)
	return nil
}

// think adds to the reasoning.
func (c *chatReplyBuilder) think(field, s string) {
	c.thought.field = field
	c.thought.WriteString(s)
	c.Emit(llm.Delta{Part: 0, Think: s})
}

// say adds to the text.
func (c *chatReplyBuilder) say(s string) {
	if s != "" {
		c.text.WriteString(s)
		c.Emit(llm.Delta{Part: 1, Text: s})
	}
}

// addCall appends a piece of a call, or begins a new call with it. The name and the id count when they first
// come; a server that repeats them in each piece does not change them. A whole call that comes once more under its id
// is not taken for the rest of its arguments.
func (c *chatReplyBuilder) addCall(t chatCall) error {
	at, args := c.findCall(t), string(t.Function.Arguments)
	switch {
	case at == nil:
		if err := c.KeepPart(len(t.ID) + len(t.Function.Name) + len(t.Extra)); err != nil {
			return err
		}
		if len(c.calls) > wire.MaxCalls { // one too many is kept, so that none of them runs
			return nil
		}
		at = &callBuilder{chatCall: t}
		at.Function.Arguments = ""
		c.calls = append(c.calls, at)
	case t.ID != "" && t.Function.Name != "" && args == at.args.String() && json.Valid([]byte(args)):
		return nil
	}
	at.Function.Name = cmp.Or(at.Function.Name, t.Function.Name)
	at.ID = cmp.Or(at.ID, t.ID)
	if len(t.Extra) > 0 && string(t.Extra) != "null" {
		at.Extra = t.Extra
	}
	at.addArgs(args)
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
		case t.ID == "" && t.Function.Name != "" && at.Function.Name != "" && at.isWhole:
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
	if think, text := c.tags.rest(); think != "" {
		c.think(fieldText, think)
	} else {
		c.say(text)
	}
	// Some servers want their reasoning back, so how it came is kept with it.
	parts := c.thought.part(c.Provider, c.Model)
	if c.text.Len() > 0 {
		parts = append(parts, llm.Text{Text: c.text.String()})
	}
	for _, t := range c.calls {
		call := llm.Call{ID: t.ID, Name: t.Function.Name, Input: json.RawMessage(t.args.String())}
		if len(t.Extra) > 0 {
			call.Opaque = opaque{Provider: c.Provider, Model: c.Model, Item: t.Extra}.encode()
		}
		parts = append(parts, call)
	}
	return c.Finish(r, parts)
}
