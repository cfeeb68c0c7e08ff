package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"muster/llm"
	"muster/llm/internal/wire"
)

// building is a reply while it streams in. Nothing of it is given out before
// message_stop.
type building struct {
	model  *model
	ids    wire.IDs
	emit   func(llm.Delta)
	blocks []*block
	usage  llm.Usage
	name   string // of the model that answers
	stop   sdk.StopReason

	stopped bool // message_stop came
}

// block is a content block while it streams in.
type block struct {
	kind      string
	id, name  string
	text      strings.Builder // or thinking
	signature strings.Builder
	data      string // of redacted thinking
	input     strings.Builder
	start     string // the input that the block began with
	done      bool
}

// event takes the next event of the stream.
func (b *building) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		b.name = string(e.Message.Model)
		b.count(e.Message.Usage.RawJSON())
	case "content_block_start":
		if int(e.Index) != len(b.blocks) {
			return b.broken("blocks out of order")
		}
		c := e.ContentBlock
		n := &block{kind: c.Type, id: c.ID, name: c.Name, data: c.Data, start: c.JSON.Input.Raw()}
		n.text.WriteString(c.Text)
		n.text.WriteString(c.Thinking)
		n.signature.WriteString(c.Signature)
		b.blocks = append(b.blocks, n)
		b.show(int(e.Index), n.kind, c.Text+c.Thinking)
	case "content_block_delta":
		n := b.open(e.Index)
		if n == nil {
			return b.broken("a piece of a block that is not open")
		}
		switch d := e.Delta; d.Type {
		case "text_delta":
			n.text.WriteString(d.Text)
			b.show(int(e.Index), n.kind, d.Text)
		case "thinking_delta":
			n.text.WriteString(d.Thinking)
			b.show(int(e.Index), n.kind, d.Thinking)
		case "signature_delta":
			n.signature.WriteString(d.Signature)
		case "input_json_delta":
			n.input.WriteString(d.PartialJSON)
		}
	case "content_block_stop":
		n := b.open(e.Index)
		if n == nil {
			return b.broken("the end of a block that is not open")
		}
		n.done = true
	case "message_delta":
		if e.Delta.StopReason != "" {
			b.stop = e.Delta.StopReason
		}
		b.count(e.Usage.RawJSON())
	case "message_stop":
		b.stopped = true
	}
	return nil
}

func (b *building) open(i int64) *block {
	if i < 0 || i >= int64(len(b.blocks)) || b.blocks[i].done {
		return nil
	}
	return b.blocks[i]
}

func (b *building) show(part int, kind, s string) {
	switch {
	case s == "":
	case kind == thinking:
		b.emit(llm.Delta{Part: part, Think: s})
	default:
		b.emit(llm.Delta{Part: part, Text: s})
	}
}

// count takes over what a usage says. They are running totals, and a later one
// may leave out what an earlier one said.
func (b *building) count(raw string) {
	var u struct {
		Input  *int `json:"input_tokens"`
		Output *int `json:"output_tokens"`
		Read   *int `json:"cache_read_input_tokens"`
		Write  *int `json:"cache_creation_input_tokens"`
	}
	if json.Unmarshal([]byte(raw), &u) != nil {
		return
	}
	set := func(to *int, from *int) {
		if from != nil {
			*to = *from
		}
	}
	set(&b.usage.Input, u.Input)
	set(&b.usage.Output, u.Output)
	set(&b.usage.CacheRead, u.Read)
	set(&b.usage.CacheWrite, u.Write)
}

func (b *building) broken(why string) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of %s is broken: %s", b.model.peer.Host(), why)
}

// reply is the finished reply.
func (b *building) reply() (llm.Reply, error) {
	if b.name == "" {
		b.name = b.model.o.Model
	}
	r := llm.Reply{Message: llm.Message{Role: llm.Assistant}, Usage: b.usage, Model: b.name}
	var runs bool // its calls may run
	switch b.stop {
	case "":
		return llm.Reply{}, b.broken("no stop reason")
	case "model_context_window_exceeded":
		return llm.Reply{}, llm.Errorf(llm.ContextFull, "the reply ran into the end of the window of %s", b.name)
	case sdk.StopReasonMaxTokens:
		r.Stop = llm.StopMax
	case sdk.StopReasonRefusal:
		r.Stop = llm.StopRefused
	case sdk.StopReasonPauseTurn:
		r.Stop = llm.StopPaused
	default:
		r.Stop, runs = llm.StopEnd, true
	}
	for _, n := range b.blocks {
		if !n.done && r.Stop != llm.StopMax {
			return llm.Reply{}, b.broken("a block without an end")
		}
		switch n.kind {
		case "text":
			if n.text.Len() > 0 {
				r.Message.Parts = append(r.Message.Parts, llm.Text{Text: n.text.String()})
			}
		case thinking, redacted:
			if p, ok := b.thought(n); ok {
				r.Message.Parts = append(r.Message.Parts, p)
			}
		case "tool_use":
			if !runs {
				continue
			}
			c, err := b.call(n)
			if err != nil {
				return llm.Reply{}, b.broken("the input of call " + n.name + " is no JSON object")
			}
			r.Message.Parts = append(r.Message.Parts, c)
			r.Stop = llm.StopTools
		}
	}
	return r, nil
}

// thought is a finished thinking block; one that was cut has no signature and is
// not kept.
func (b *building) thought(n *block) (llm.Thinking, bool) {
	s := seal{Type: n.kind, Signature: n.signature.String(), Data: n.data}
	if !n.done || s.Signature == "" && s.Data == "" && n.text.Len() == 0 {
		return llm.Thinking{}, false
	}
	p := llm.Thinking{Text: n.text.String(), Provider: b.model.provider}
	if s.Signature != "" || s.Data != "" {
		p.Opaque, _ = json.Marshal(s) // strings only: it cannot fail
	}
	return p, true
}

func (b *building) call(n *block) (llm.Call, error) {
	raw := n.input.String()
	if strings.TrimSpace(raw) == "" {
		raw = n.start
	}
	in, err := llm.Input([]byte(raw))
	return llm.Call{ID: b.ids.Take(n.id), Name: n.name, Input: in}, err
}
