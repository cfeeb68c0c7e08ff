package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"muster/llm"
	"muster/llm/internal/wire"
)

// responseBuilder collects a reply of the Responses API. The deltas are only shown; the reply is made from
// the finished items, which the final event repeats.
type responseBuilder struct {
	*wire.Exchange
	provider string

	items []outputItem // that are done
	end   *responseBody
}

// responseBody is what is read of the final event. Its usage counts the tokens of the cache among those of
// the input.
type responseBody struct {
	Model      string          `json:"model"`
	Output     []outputItem    `json:"output"`
	Error      json.RawMessage `json:"error"`
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

	isIncomplete bool
}

// Event applies an event. The event that ends the response returns true. Events of types that are not known
// here are ignored, because the vendor adds new ones at any time.
func (c *responseBuilder) Event(data []byte) (bool, error) {
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
		c.Emit(llm.Delta{Part: e.Index, Text: deltaText(e.Delta)})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		c.Emit(llm.Delta{Part: e.Index, Think: deltaText(e.Delta)})
	case "response.output_item.done":
		item := outputItem{index: e.Index}
		if err := json.Unmarshal(e.Item, &item); err != nil {
			return false, err
		}
		c.items = append(c.items, item)
	case "response.cancelled":
		return true, c.ErrBroken("it was cancelled there")
	case "response.failed", "response.completed", "response.incomplete":
		var r responseBody
		if err := json.Unmarshal(e.Response, &r); err != nil {
			return false, err
		}
		if e.Type == "response.failed" {
			// In the form of an error event, so that one function judges both.
			body, err := json.Marshal(map[string]json.RawMessage{"error": wire.OrDefault(r.Error, "null")})
			return true, cmp.Or[error](err, c.ErrorInStream(body))
		}
		r.isIncomplete = e.Type == "response.incomplete"
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

// Reply returns the finished reply. An incomplete response is one only for a reason that llm.Stop has a
// word for.
func (c *responseBuilder) Reply() (r llm.Reply, ok bool, err error) {
	if c.end == nil {
		return r, false, nil
	}
	u := c.end.Usage
	r = llm.Reply{Message: llm.Message{Role: llm.Assistant}, Model: cmp.Or(c.end.Model, c.Model),
		Usage: newUsage(u.Input, u.Output, u.Details.Cached, u.Details.Written)}
	if r.Stop, err = c.stop(); err != nil {
		return llm.Reply{}, false, err
	}
	items := c.end.Output
	if len(items) == 0 { // some servers give the items only one by one
		items = c.items
		slices.SortStableFunc(items, func(a, b outputItem) int { return a.index - b.index })
	}
	if slices.ContainsFunc(items, outputItem.isRefusal) {
		r.Stop = llm.StopRefused
	}
	// The calls of a reply that was cut or refused never run, even if their arguments happen to parse.
	canRun := r.Stop == llm.StopEnd
	// Reasoning is kept only with the item that it led to, because the vendor refuses it without.
	var reasoning []llm.Part
	for _, it := range items {
		switch it.Type {
		case "reasoning":
			reasoning = append(reasoning, it.thinking(c.provider)...)
			continue
		case "message":
			if parts := it.texts(c.provider); len(parts) > 0 {
				r.Message.Parts = append(append(r.Message.Parts, reasoning...), parts...)
			} else {
				continue
			}
		case "function_call":
			if canRun {
				call, err := c.Call(it.CallID, it.Name, it.Arguments)
				if err != nil {
					return llm.Reply{}, false, err
				}
				// The item can go back as it came only if its call kept the server's id.
				if call.ID == it.CallID {
					call.Opaque = opaqueItem{Provider: c.provider, Item: it.raw}.encode()
				}
				r.Message.Parts = append(append(r.Message.Parts, reasoning...), call)
				r.Stop = llm.StopTools
			}
		default: // such as those of the vendor's own tools
			continue
		}
		reasoning = nil
	}
	if canRun {
		r.Message.Parts = append(r.Message.Parts, reasoning...)
	}
	return r, true, nil
}

// stop returns why the response ended, before its items are looked at.
func (c *responseBuilder) stop() (llm.Stop, error) {
	switch reason := c.end.Incomplete.Reason; {
	case !c.end.isIncomplete:
		return llm.StopEnd, nil
	case reason == "max_output_tokens":
		return llm.StopMax, nil
	case reason == "content_filter":
		return llm.StopRefused, nil
	default:
		return "", c.ErrBroken("it is incomplete: %s", reason)
	}
}

// outputItem is what is read of an item, whatever its type.
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
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`

	raw   json.RawMessage // the whole item, because the vendor wants it back as it was
	index int             // items may be done in another order than the one that they have in the reply
}

// UnmarshalJSON reads an item and keeps it as it is.
func (it *outputItem) UnmarshalJSON(data []byte) error {
	type fields outputItem // without this method
	it.raw = bytes.Clone(data)
	return json.Unmarshal(data, (*fields)(it))
}

// isRefusal reports whether the model or the vendor declined in this item.
func (it outputItem) isRefusal() bool {
	for _, p := range it.Content {
		if p.Refusal != "" {
			return it.Type == "message"
		}
	}
	return false
}

// thinking returns the part for an item of reasoning, or none if there is nothing in it.
func (it outputItem) thinking(provider string) []llm.Part {
	p := llm.Thinking{Provider: provider}
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
		p.Opaque = opaqueItem{Item: it.raw}.encode()
	}
	if p.Text == "" && p.Opaque == nil {
		return nil
	}
	return []llm.Part{p}
}

// texts returns the parts for a message, or none if it says nothing.
func (it outputItem) texts(provider string) (parts []llm.Part) {
	s := ""
	for _, p := range it.Content {
		s += p.Text + p.Refusal
	}
	if s == "" {
		return nil
	}
	if it.Phase != "" {
		// llm.Text has no place for the phase, so a part before the text carries it.
		parts = append(parts, llm.Thinking{Provider: provider, Opaque: opaqueItem{Phase: it.Phase}.encode()})
	}
	return append(parts, llm.Text{Text: s})
}

// encode returns the JSON of k. It cannot fail, because an item was parsed before it is kept.
func (k opaqueItem) encode() json.RawMessage {
	b, _ := json.Marshal(k)
	return b
}
