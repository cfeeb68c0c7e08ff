package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"

	"muster/llm"
	"muster/llm/internal/wire"
)

// replyBuilder collects a reply while it streams in. It implements wire.Reader and returns nothing before
// the event message_stop.
type replyBuilder struct {
	*wire.Exchange
	bound     string // what the thinking is bound to
	blocks    []*blockBuilder
	usage     usage
	modelName string // of the model that answers, according to the server
	stop      string

	// hasStopped says that message_stop came. Before it, nothing of the reply may be used: the connection may
	// have broken between two calls.
	hasStopped bool
}

// usage is llm.Usage by the names of the server. The numbers are running totals.
type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	Creation   struct {
		Long int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"` // of CacheWrite, by how long it lasts; some servers leave it out
}

// total returns the usage as others read it: what was written for an hour is not counted twice.
func (u usage) total() llm.Usage {
	long := min(u.Creation.Long, u.CacheWrite)
	return llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite - long,
		CacheWriteLong: long}
}

// blockBuilder collects one content block.
type blockBuilder struct {
	start     blockStart
	text      []byte // or thinking
	signature []byte
	input     []byte
	isDone    bool
}

// blockStart is what is read of the beginning of a block.
type blockStart struct {
	Type, ID, Name            string
	Text, Thinking, Signature string
	Data                      string          // of redacted thinking
	Input                     json.RawMessage // counts if no pieces follow
}

// event is what is read of an event, whatever its type. A field that the type does not have is zero. Usage
// stays raw, so that a report in a form that is not known does not fail the reply.
type event struct {
	Type    string
	Index   int
	Message struct {
		Model string
		Usage json.RawMessage
	}
	Block blockStart `json:"content_block"`
	Delta struct {
		Text, Thinking, Signature string
		PartialJSON               string `json:"partial_json"`
		StopReason                string `json:"stop_reason"`
	}
	Usage json.RawMessage
}

// Event applies the next event of the stream. A stream whose blocks do not follow the protocol is an error
// and not repaired: a call that was put together wrongly would run. What follows message_stop is not waited
// for.
func (b *replyBuilder) Event(data []byte) (done bool, err error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "message_start":
		b.modelName = e.Message.Model
		b.addUsage(e.Message.Usage)
	case "content_block_start":
		if e.Index != len(b.blocks) {
			return false, b.ErrMalformed("blocks out of order")
		}
		return false, b.addBlock(e.Block)
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= len(b.blocks) || b.blocks[e.Index].isDone {
			return false, b.ErrMalformed("%s for a block that is not open", e.Type)
		}
		b.blocks[e.Index].isDone = e.Type == "content_block_stop"
		return false, b.addPieces(e.Index, e.Delta.Text+e.Delta.Thinking, e.Delta.Signature, e.Delta.PartialJSON)
	case "message_delta":
		b.stop = cmp.Or(e.Delta.StopReason, b.stop)
		b.addUsage(e.Usage)
	case "message_stop":
		b.hasStopped = true
	case "message": // the server does not stream: this is the whole reply
		return true, b.addWhole(data)
	}
	return b.hasStopped, nil
}

// addWhole reads a reply that did not come as a stream. Its blocks are those that a stream begins with, and whole.
func (b *replyBuilder) addWhole(data []byte) error {
	var whole struct {
		Model      string
		Content    []blockStart
		StopReason string `json:"stop_reason"`
		Usage      json.RawMessage
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	for i, block := range whole.Content {
		if err := b.addBlock(block); err != nil {
			return err
		}
		b.blocks[i].isDone = true
	}
	b.modelName, b.stop, b.hasStopped = whole.Model, whole.StopReason, true
	b.addUsage(whole.Usage)
	return nil
}

// addBlock begins a block.
func (b *replyBuilder) addBlock(start blockStart) error {
	if err := b.KeepPart(len(start.ID) + len(start.Name) + len(start.Data) + len(start.Input)); err != nil {
		return err
	}
	b.blocks = append(b.blocks, &blockBuilder{start: start})
	return b.addPieces(len(b.blocks)-1, start.Text+start.Thinking, start.Signature, "")
}

// addPieces appends to a block and passes the text or the thinking on. The part of a delta is the index of
// the block, so that what people see is grouped as in the finished reply.
func (b *replyBuilder) addPieces(index int, text, signature, input string) error {
	if err := b.Keep(len(text) + len(signature) + len(input)); err != nil {
		return err
	}
	n := b.blocks[index]
	n.text = append(n.text, text...)
	n.signature = append(n.signature, signature...)
	n.input = append(n.input, input...)
	switch {
	case text == "":
	case n.start.Type == thinking:
		b.Emit(llm.Delta{Part: index, Think: text})
	default:
		b.Emit(llm.Delta{Part: index, Text: text})
	}
	return nil
}

// addUsage applies a report of usage, if there is one. A later report may leave out what an earlier one
// had: a field that is missing says nothing, and one that is 0 says 0.
func (b *replyBuilder) addUsage(raw json.RawMessage) { _ = json.Unmarshal(raw, &b.usage) }

// Reply returns the finished reply.
func (b *replyBuilder) Reply() (r llm.Reply, ok bool, err error) {
	if !b.hasStopped {
		return r, false, nil
	}
	r = llm.Reply{Stop: llm.StopEnd, Model: b.modelName, Usage: b.usage.total()}
	switch b.stop {
	case "":
		return r, false, b.ErrMalformed("no stop reason")
	case "model_context_window_exceeded":
		return r, false, llm.Errorf(llm.ContextFull, "the reply ran into the end of the window of %s",
			cmp.Or(b.modelName, b.Model))
	case "max_tokens":
		r.Stop = llm.StopMax
	case "refusal":
		r.Stop = llm.StopRefused
	case "pause_turn":
		r.Stop = llm.StopPaused
	}
	var parts []llm.Part
	for _, n := range b.blocks {
		switch {
		case !n.isDone && r.Stop != llm.StopMax:
			return r, false, b.ErrMalformed("a block without an end")
		case n.start.Type == "text" && len(n.text) > 0:
			parts = append(parts, llm.Text{Text: string(n.text)})
		case n.start.Type == thinking || n.start.Type == redacted:
			parts = append(parts, n.thinkingParts(b.Provider, b.bound)...)
		case n.start.Type == "tool_use":
			// The input comes in pieces of JSON that mean nothing before the last one. A call without
			// arguments may have no pieces at all, only the empty input that its block began with.
			if len(bytes.TrimSpace(n.input)) == 0 {
				n.input = n.start.Input
			}
			parts = append(parts, llm.Call{ID: n.start.ID, Name: n.start.Name, Input: n.input})
		}
	}
	return b.Finish(r, parts)
}

// thinkingParts returns a finished block of thinking. One that was cut off has no signature and is dropped.
func (n *blockBuilder) thinkingParts(provider, bound string) []llm.Part {
	s := opaqueThinking{Type: n.start.Type, Signature: string(n.signature), Data: n.start.Data, Bound: bound}
	isSealed := s.Signature != "" || s.Data != ""
	if !n.isDone || !isSealed && len(n.text) == 0 {
		return nil
	}
	p := llm.Thinking{Text: string(n.text), Provider: provider}
	if isSealed {
		p.Opaque, _ = json.Marshal(s) // strings only: it cannot fail
	}
	return []llm.Part{p}
}
