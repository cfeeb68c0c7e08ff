package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"muster/llm"
	"muster/llm/internal/wire"
)

// responseBuilder collects a reply of the Responses API. The deltas are only shown; the reply is made from the finished
// items, which the final event repeats.
type responseBuilder struct {
	model *model
	ids   wire.IDs
	emit  func(llm.Delta)

	items []indexedItem // that are done
	end   *responseBody
}

// indexedItem is an output item with its position. Items may be done in another order than the one that they have in
// the reply.
type indexedItem struct {
	index int
	raw   json.RawMessage
}

// responseBody is what is read of the final event.
type responseBody struct {
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Details struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// event applies an event. The event that ends the response returns true. Events of types that are not known here are
// ignored, because the vendor adds new ones at any time.
func (c *responseBuilder) event(data []byte) (bool, error) {
	var e struct {
		Type     string          `json:"type"`
		Index    int             `json:"output_index"`
		Delta    json.RawMessage `json:"delta"`
		Item     json.RawMessage `json:"item"`
		Response json.RawMessage `json:"response"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		c.emit(llm.Delta{Part: e.Index, Text: deltaText(e.Delta)})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		c.emit(llm.Delta{Part: e.Index, Think: deltaText(e.Delta)})
	case "response.output_item.done":
		c.items = append(c.items, indexedItem{e.Index, e.Item})
	case "response.failed", "response.completed", "response.incomplete", "response.cancelled":
		var r responseBody
		if err := json.Unmarshal(e.Response, &r); err != nil {
			return false, err
		}
		switch e.Type {
		case "response.failed":
			// In the form of an error event, so that one function judges both.
			body, err := json.Marshal(map[string]json.RawMessage{"error": orDefault(r.Error, "null")})
			if err != nil {
				return false, err
			}
			return true, c.model.peer.ErrorInStream(body)
		case "response.cancelled":
			return true, c.model.errBroken("it was cancelled there")
		case "response.completed":
			r.Status = "completed"
		default:
			r.Status = "incomplete"
		}
		c.end = &r
		return true, nil
	}
	return false, nil
}

// deltaText returns the text of a delta, or "" if it holds something else.
func deltaText(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// outputItem is what is read of an item, whatever its type. The item itself is kept whole, because the vendor wants it
// back as it was.
type outputItem struct {
	Type      string `json:"type"`
	Phase     string `json:"phase"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// reply returns the finished reply. An incomplete response is one only for a reason that llm.Stop has a word for.
func (c *responseBuilder) reply() (r llm.Reply, ok bool, err error) {
	if c.end == nil {
		return r, false, nil
	}
	u := c.end.Usage
	r = llm.Reply{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd,
		Model: cmp.Or(c.end.Model, c.model.o.Model),
		Usage: newUsage(u.Input, u.Output, u.Details.Cached, u.Details.Written)}
	if c.end.Status == "incomplete" {
		switch c.end.Incomplete.Reason {
		case "max_output_tokens":
			r.Stop = llm.StopMax
		case "content_filter":
			r.Stop = llm.StopRefused
		default:
			return llm.Reply{}, false, c.model.errBroken("it is incomplete: %s", c.end.Incomplete.Reason)
		}
	}
	raws := c.end.Output
	if len(raws) == 0 { // some servers give the items only one by one
		slices.SortStableFunc(c.items, func(a, b indexedItem) int { return a.index - b.index })
		for _, it := range c.items {
			raws = append(raws, it.raw)
		}
	}
	for _, raw := range raws {
		if err := c.addItem(&r, raw); err != nil {
			return llm.Reply{}, false, err
		}
	}
	reconcileCalls(&r)
	return r, true, nil
}

// addItem appends one output item to the reply. Items of other types, such as those of the vendor's own tools, are left
// out.
func (c *responseBuilder) addItem(r *llm.Reply, raw json.RawMessage) error {
	var it outputItem
	if err := json.Unmarshal(raw, &it); err != nil {
		return c.model.errBroken("an item does not parse: %w", err)
	}
	switch it.Type {
	case "reasoning":
		p := llm.Thinking{Provider: c.model.provider}
		for i, s := range it.Summary {
			if i > 0 {
				p.Text += "\n\n"
			}
			p.Text += s.Text
		}
		for _, s := range it.Content {
			p.Text += s.Text
		}
		if it.Encrypted != "" { // without it the vendor would look for an item that it did not store
			p.Opaque = c.marshalOpaque(opaqueItem{Item: raw})
		}
		if p.Text != "" || p.Opaque != nil {
			r.Message.Parts = append(r.Message.Parts, p)
		}
	case "message":
		s := ""
		for _, p := range it.Content {
			s += p.Text + p.Refusal
			if p.Refusal != "" {
				r.Stop = llm.StopRefused
			}
		}
		if s == "" {
			return nil
		}
		if it.Phase != "" {
			// llm.Text has no place for the phase, so a part before the text carries it.
			r.Message.Parts = append(r.Message.Parts,
				llm.Thinking{Provider: c.model.provider, Opaque: c.marshalOpaque(opaqueItem{Phase: it.Phase})})
		}
		r.Message.Parts = append(r.Message.Parts, llm.Text{Text: s})
	case "function_call":
		in, err := llm.Input([]byte(it.Arguments))
		if r.Stop == llm.StopMax {
			in, err = nil, nil // dropped below, and it may be cut
		}
		if err != nil {
			return c.model.errBroken("call %q: %w", it.Name, err)
		}
		call := llm.Call{ID: c.ids.Next(it.CallID), Name: it.Name, Input: in}
		// The item can go back as it came only if its call kept the server's id.
		if call.ID == it.CallID {
			call.Opaque = c.marshalOpaque(opaqueItem{Provider: c.model.provider, Item: raw})
		}
		r.Message.Parts = append(r.Message.Parts, call)
	}
	return nil
}

// marshalOpaque encodes an opaqueItem.
func (c *responseBuilder) marshalOpaque(k opaqueItem) json.RawMessage {
	b, err := json.Marshal(k)
	if err != nil {
		return nil // not reached: an item was parsed before it is kept
	}
	return b
}

// reconcileCalls makes the stop reason and the calls agree. Where it drops calls, it also drops the reasoning before
// them, because the vendor refuses reasoning without the item that it led to.
func reconcileCalls(r *llm.Reply) {
	if r.Stop == llm.StopEnd {
		if len(r.Message.Calls()) > 0 {
			r.Stop = llm.StopTools
		}
		return
	}
	var out []llm.Part
	var pending []llm.Part
	for _, p := range r.Message.Parts {
		switch p.(type) {
		case llm.Call:
			pending = nil
		case llm.Thinking:
			pending = append(pending, p)
		default:
			out = append(append(out, pending...), p)
			pending = nil
		}
	}
	r.Message.Parts = out
}
