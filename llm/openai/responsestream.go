package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"muster/llm"
	"muster/llm/internal/wire"
)

// responseBuilder collects a reply of the Responses API. The deltas are only shown; the reply is made from
// the finished items, which the final event repeats.
type responseBuilder struct {
	*wire.Exchange

	items []item // that are done
	end   *responseBody
}

// responseBody is what is read of the final event. Its usage counts the tokens of the cache among those of
// the input.
type responseBody struct {
	Model      string          `json:"model"`
	Output     []item          `json:"output"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage json.RawMessage `json:"usage"` // raw, so that a report in a form that is not known does not fail the reply

	isIncomplete bool
}

// responseUsage is what is read of the usage.
type responseUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
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
		Object   string          `json:"object"` // of a response that does not come as a stream
		Status   string          `json:"status"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	if e.Type == "" && e.Object == "response" {
		e.Type, e.Response = "response."+e.Status, data
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		c.Emit(llm.Delta{Part: e.Index, Text: deltaText(e.Delta)})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		c.Emit(llm.Delta{Part: e.Index, Think: deltaText(e.Delta)})
	case "response.output_item.done":
		it := item{index: e.Index}
		if err := json.Unmarshal(e.Item, &it); err != nil {
			return false, err
		}
		if err := c.KeepPart(len(e.Item)); err != nil {
			return false, err
		}
		c.items = append(c.items, it)
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
		counted := 0 // of what the event repeats
		for _, it := range c.items {
			counted += len(it.raw)
		}
		return true, c.Keep(max(0, len(e.Response)-counted))
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
	var u responseUsage
	_ = json.Unmarshal(c.end.Usage, &u)
	r = llm.Reply{Model: c.end.Model, Usage: newUsage(u.Input, u.Output, u.Details.Cached, u.Details.Written)}
	switch reason := c.end.Incomplete.Reason; {
	case !c.end.isIncomplete:
		r.Stop = llm.StopEnd
	case reason == "max_output_tokens":
		r.Stop = llm.StopMax
	case reason == "content_filter":
		r.Stop = llm.StopRefused
	default:
		return r, false, c.ErrBroken("it is incomplete: %s", reason)
	}
	items := c.end.Output
	if len(items) == 0 { // some servers give the items only one by one
		items = c.items
		slices.SortStableFunc(items, func(a, b item) int { return a.index - b.index })
	}
	if slices.ContainsFunc(items, item.isRefusal) {
		r.Stop = llm.StopRefused
	}
	// Reasoning is kept only with the item that it led to, because the vendor refuses it without. So that of a
	// call that never runs goes, too.
	var parts, reasoning []llm.Part
	for _, it := range items {
		var made []llm.Part
		switch it.Type {
		case "reasoning":
			reasoning = append(reasoning, it.thinking(c.Peer)...)
			continue
		case "message":
			made = it.texts(c.Provider)
		case "function_call":
			made = []llm.Part{llm.Call{ID: it.CallID, Name: it.Name, Input: json.RawMessage(it.Arguments),
				Opaque: opaque{Provider: c.Provider, Maker: c.Maker, Item: it.raw}.encode()}}
			if r.Stop != llm.StopEnd {
				reasoning = nil
			}
		} // other types are those of the vendor's own tools
		if len(made) > 0 {
			parts, reasoning = append(append(parts, reasoning...), made...), nil
		}
	}
	if r.Stop == llm.StopEnd {
		parts = append(parts, reasoning...)
	}
	return c.Finish(r, parts)
}

// UnmarshalJSON reads an item and keeps it as it is.
func (it *item) UnmarshalJSON(data []byte) error {
	type fields item // without this method
	it.raw = bytes.Clone(data)
	return json.Unmarshal(data, (*fields)(it))
}

// isRefusal reports whether the model or the vendor declined in this item.
func (it item) isRefusal() bool {
	for _, p := range it.Content {
		if p.Refusal != "" {
			return it.Type == "message"
		}
	}
	return false
}

// thinking returns the part for an item of reasoning, or none if there is nothing in it.
func (it item) thinking(maker wire.Peer) []llm.Part {
	var text strings.Builder
	for i, s := range it.Summary {
		if i > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString(s.Text)
	}
	for _, s := range it.Content {
		text.WriteString(s.Text)
	}
	p := llm.Thinking{Text: text.String(), Provider: maker.Provider}
	if it.Encrypted != "" { // without it the vendor would look for an item that it did not store
		p.Opaque = opaque{Maker: maker.Maker, Item: it.raw}.encode()
	}
	if p.Text == "" && p.Opaque == nil {
		return nil
	}
	return []llm.Part{p}
}

// texts returns the parts for a message, or none if it says nothing.
func (it item) texts(provider string) (parts []llm.Part) {
	var text strings.Builder
	for _, p := range it.Content {
		text.WriteString(p.Text + p.Refusal)
	}
	if text.Len() == 0 {
		return nil
	}
	if it.Phase != "" {
		// llm.Text has no place for the phase, so a part before the text carries it.
		parts = append(parts, llm.Thinking{Provider: provider, Opaque: opaque{Phase: it.Phase}.encode()})
	}
	return append(parts, llm.Text{Text: text.String()})
}
