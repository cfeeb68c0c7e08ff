package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"muster/llm"
	"muster/llm/internal/wire"
)

// chatReplyBuilder collects a reply of Chat Completions. The API sends text, reasoning and calls in pieces
// and without an order among them; the finished reply has the reasoning first, then the text, then the
// calls.
type chatReplyBuilder struct {
	*wire.Exchange
	provider string

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
	index    *int // the server's number of the call, nil if it sends none
	id, name string
	args     strings.Builder
}

// chatChunk is what is read of one event. All other fields are ignored, because servers add their own.
type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content   string      `json:"content"`
			Refusal   string      `json:"refusal"`
			ReasonedA string      `json:"reasoning_content"`
			ReasonedB string      `json:"reasoning"`
			ToolCalls []callDelta `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
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

// callDelta is a piece of a call. Only the first piece must name the tool; some servers repeat the id in
// each.
type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string, or with some servers an object
	} `json:"function"`
}

// Event applies a chunk. It never ends the stream, because the usage comes after the finish reason.
func (c *chatReplyBuilder) Event(data []byte) (bool, error) {
	var k chatChunk
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	if k.Model != "" {
		c.name = k.Model
	}
	if u := k.Usage; u != nil {
		cached := max(u.Details.Cached, u.Hit)
		c.usage = newUsage(u.Prompt, u.Completion, cached, u.Details.Written)
	}
	// A request asks for one choice, so there is at most one.
	if len(k.Choices) == 0 { // the chunk with the usage has none
		return false, nil
	}
	d := k.Choices[0].Delta
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
	if f := k.Choices[0].FinishReason; f != "" {
		c.finish = f
	}
	return false, nil
}

// addCall appends a piece of a call, or begins a new call with it. The name and the id count when they first
// come; a server that repeats them in each piece does not change them.
func (c *chatReplyBuilder) addCall(t callDelta) error {
	args, err := parseArguments(t.Function.Arguments)
	if err != nil {
		return err
	}
	at := c.findCall(t)
	if at == nil {
		at = &callBuilder{index: t.Index, id: t.ID, name: t.Function.Name}
		c.calls = append(c.calls, at)
	} else if at.name == "" {
		at.name = t.Function.Name
	}
	if at.id == "" {
		at.id = t.ID
	}
	at.args.WriteString(args)
	return nil
}

// findCall returns the call that the piece continues, or nil if it begins a new one. The index should tell,
// but some servers give every call the index 0, or none.
func (c *chatReplyBuilder) findCall(t callDelta) *callBuilder {
	for _, at := range c.calls {
		if t.ID != "" && t.ID == at.id {
			return at
		}
	}
	// Without a known id, the piece most probably continues the newest call.
	for i := len(c.calls) - 1; i >= 0; i-- {
		at := c.calls[i]
		if t.Index != nil && at.index != nil && *t.Index != *at.index {
			continue
		}
		switch {
		case t.ID != "" && at.id != "" && t.ID != at.id:
			return nil
		case t.ID == "" && t.Function.Name != "" && at.name != "" && json.Valid([]byte(at.args.String())):
			return nil // it was whole, and here is a name again
		}
		return at
	}
	return nil
}

// parseArguments returns the text of the arguments in a piece: the string's content, or an object as it
// stands.
func parseArguments(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] != '"' {
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// Reply returns the finished reply. Calls count only if the reply ended normally: of a reply that was cut
// or refused, a call may be incomplete, and an incomplete call must never run.
func (c *chatReplyBuilder) Reply() (r llm.Reply, ok bool, err error) {
	if c.finish == "" {
		return r, false, nil
	}
	r = llm.Reply{Message: llm.Message{Role: llm.Assistant}, Usage: c.usage, Model: cmp.Or(c.name, c.Model)}
	var runs bool
	switch c.finish {
	case "length":
		r.Stop = llm.StopMax
	case "content_filter", "sensitive":
		r.Stop = llm.StopRefused
	case "insufficient_system_resource":
		return llm.Reply{}, false, llm.Errorf(llm.Overloaded, "%s had to stop for want of resources", c.Host())
	case "error", "network_error", "abort":
		return llm.Reply{}, false, c.ErrBroken("it ended with %q", c.finish)
	default: // some say "stop" where they mean "tool_calls"
		r.Stop, runs = llm.StopEnd, true
	}
	if c.refused {
		r.Stop, runs = llm.StopRefused, false
	}
	if c.thought.Len() > 0 {
		// Some servers want their reasoning back with the calls that it led to, so the field's name is kept
		// with it.
		opaque, err := json.Marshal(opaqueReasoning{c.field})
		if err != nil {
			return llm.Reply{}, false, err
		}
		r.Message.Parts = append(r.Message.Parts, llm.Thinking{Text: c.thought.String(), Provider: c.provider,
			Opaque: opaque})
	}
	if c.text.Len() > 0 {
		r.Message.Parts = append(r.Message.Parts, llm.Text{Text: c.text.String()})
	}
	if !runs {
		return r, true, nil
	}
	for _, t := range c.calls {
		call, err := c.Call(t.id, t.name, t.args.String())
		if err == nil && t.name == "" {
			err = c.ErrBroken("a call has no name")
		}
		if err != nil {
			return llm.Reply{}, false, err
		}
		r.Message.Parts = append(r.Message.Parts, call)
		r.Stop = llm.StopTools
	}
	return r, true, nil
}
