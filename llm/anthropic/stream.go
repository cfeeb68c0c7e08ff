package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"muster/llm"
	"muster/llm/internal/wire"
)

// replyBuilder collects a reply while it streams in. It returns nothing before the event message_stop.
type replyBuilder struct {
	model  *model
	ids    wire.IDs
	emit   func(llm.Delta)
	blocks []*blockBuilder
	usage  llm.Usage
	// modelName is the model that answers, according to the server.
	modelName string
	stop      sdk.StopReason

	hasStopped bool // message_stop came
}

// blockBuilder collects one content block.
type blockBuilder struct {
	kind      string
	id, name  string
	text      strings.Builder // or thinking
	signature strings.Builder
	data      string // of redacted thinking
	input     strings.Builder
	// initialInput is the input that the block began with. It counts if no pieces follow.
	initialInput string
	isDone       bool
}

// event applies the next event of the stream.
func (b *replyBuilder) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	// A stream whose blocks do not follow the protocol is an error and not repaired: a call that was put together
	// wrongly would run.
	case "message_start":
		b.modelName = string(e.Message.Model)
		b.addUsage(e.Message.Usage.RawJSON())
	case "content_block_start":
		if int(e.Index) != len(b.blocks) {
			return b.errBroken("blocks out of order")
		}
		c := e.ContentBlock
		n := &blockBuilder{kind: c.Type, id: c.ID, name: c.Name, data: c.Data, initialInput: c.JSON.Input.Raw()}
		n.text.WriteString(c.Text)
		n.text.WriteString(c.Thinking)
		n.signature.WriteString(c.Signature)
		b.blocks = append(b.blocks, n)
		b.emitText(int(e.Index), n.kind, c.Text+c.Thinking)
	case "content_block_delta":
		n := b.openBlock(e.Index)
		if n == nil {
			return b.errBroken("a piece of a block that is not open")
		}
		switch d := e.Delta; d.Type {
		case "text_delta":
			n.text.WriteString(d.Text)
			b.emitText(int(e.Index), n.kind, d.Text)
		case "thinking_delta":
			n.text.WriteString(d.Thinking)
			b.emitText(int(e.Index), n.kind, d.Thinking)
		case "signature_delta":
			n.signature.WriteString(d.Signature)
		case "input_json_delta":
			n.input.WriteString(d.PartialJSON)
		}
	case "content_block_stop":
		n := b.openBlock(e.Index)
		if n == nil {
			return b.errBroken("the end of a block that is not open")
		}
		n.isDone = true
	case "message_delta":
		if e.Delta.StopReason != "" {
			b.stop = e.Delta.StopReason
		}
		b.addUsage(e.Usage.RawJSON())
	case "message_stop":
		b.hasStopped = true
	}
	return nil
}

// openBlock returns the block with that index, or nil if it has not begun or has ended.
func (b *replyBuilder) openBlock(i int64) *blockBuilder {
	if i < 0 || i >= int64(len(b.blocks)) || b.blocks[i].isDone {
		return nil
	}
	return b.blocks[i]
}

// emitText passes a piece of text or thinking on. Part is the index of the block, so that what people see is grouped as
// in the finished reply.
func (b *replyBuilder) emitText(part int, kind, s string) {
	switch {
	case s == "":
	case kind == thinking:
		b.emit(llm.Delta{Part: part, Think: s})
	default:
		b.emit(llm.Delta{Part: part, Text: s})
	}
}

// addUsage applies a report of usage. The numbers are running totals, and a later report may leave out what an earlier
// one had.
func (b *replyBuilder) addUsage(raw string) {
	var u struct {
		Input  *int `json:"input_tokens"`
		Output *int `json:"output_tokens"`
		Read   *int `json:"cache_read_input_tokens"`
		Write  *int `json:"cache_creation_input_tokens"`
	}
	if json.Unmarshal([]byte(raw), &u) != nil {
		return
	}
	// A field that is missing says nothing; one that is 0 says 0.
	set := func(to, from *int) {
		if from != nil {
			*to = *from
		}
	}
	set(&b.usage.Input, u.Input)
	set(&b.usage.Output, u.Output)
	set(&b.usage.CacheRead, u.Read)
	set(&b.usage.CacheWrite, u.Write)
}

// errBroken says that the stream makes no sense.
func (b *replyBuilder) errBroken(why string) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of %s is broken: %s", b.model.peer.Host(), why)
}

// reply returns the finished reply. It drops calls whose input may be cut: only a reply that ended by itself or for its
// calls has all of them.
func (b *replyBuilder) reply() (llm.Reply, error) {
	if b.modelName == "" {
		b.modelName = b.model.o.Model
	}
	r := llm.Reply{Message: llm.Message{Role: llm.Assistant}, Usage: b.usage, Model: b.modelName}
	var runs bool // its calls may run
	switch b.stop {
	case "":
		return llm.Reply{}, b.errBroken("no stop reason")
	case "model_context_window_exceeded":
		return llm.Reply{}, llm.Errorf(llm.ContextFull, "the reply ran into the end of the window of %s", b.modelName)
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
		if !n.isDone && r.Stop != llm.StopMax {
			return llm.Reply{}, b.errBroken("a block without an end")
		}
		switch n.kind {
		case "text":
			if n.text.Len() > 0 {
				r.Message.Parts = append(r.Message.Parts, llm.Text{Text: n.text.String()})
			}
		case thinking, redacted:
			if p, ok := b.finishThinking(n); ok {
				r.Message.Parts = append(r.Message.Parts, p)
			}
		case "tool_use":
			if !runs {
				continue
			}
			c, err := b.finishCall(n)
			if err != nil {
				return llm.Reply{}, b.errBroken("the input of call " + n.name + " is no JSON object")
			}
			r.Message.Parts = append(r.Message.Parts, c)
			r.Stop = llm.StopTools
		}
	}
	return r, nil
}

// finishThinking returns a finished block of thinking. One that was cut off has no signature and is dropped.
func (b *replyBuilder) finishThinking(n *blockBuilder) (llm.Thinking, bool) {
	s := opaqueThinking{Type: n.kind, Signature: n.signature.String(), Data: n.data}
	if !n.isDone || s.Signature == "" && s.Data == "" && n.text.Len() == 0 {
		return llm.Thinking{}, false
	}
	p := llm.Thinking{Text: n.text.String(), Provider: b.model.provider}
	if s.Signature != "" || s.Data != "" {
		p.Opaque, _ = json.Marshal(s) // strings only: it cannot fail
	}
	return p, true
}

// finishCall returns a finished call. Its input comes in pieces of JSON that mean nothing before the last one. A call
// without arguments may have no pieces at all, only the empty input that its block began with.
func (b *replyBuilder) finishCall(n *blockBuilder) (llm.Call, error) {
	raw := n.input.String()
	if strings.TrimSpace(raw) == "" {
		raw = n.initialInput
	}
	in, err := llm.Input([]byte(raw))
	return llm.Call{ID: b.ids.Next(n.id), Name: n.name, Input: in}, err
}
