package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"muster/llm"
)

// responsesAPI is the Responses API.
type responsesAPI struct{}

type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

// parse reads a request. It refuses what the real server refuses.
func (responsesAPI) parse(body []byte) (a wireRequest, err error) {
	var w struct {
		Model        string          `json:"model"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		MaxTokens    int             `json:"max_output_tokens"`
		Stream       bool            `json:"stream"`
		CacheKey     string          `json:"prompt_cache_key"`
		User         string          `json:"user"`
		Tools        []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	if err = decodeBody(body, &w); err != nil {
		return a, err
	}
	switch {
	case !w.Stream:
		return a, errors.New("stream: only streaming is served here")
	case w.Model == "":
		return a, errors.New("missing required parameter: 'model'")
	}
	a.Model, a.MaxTokens = w.Model, w.MaxTokens
	a.setKeys(w.User, w.CacheKey)
	if w.Instructions != "" {
		a.System = []string{w.Instructions}
	}
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, llm.Spec{Name: t.Name, Description: t.Description, Schema: t.Parameters})
	}
	var one string
	if json.Unmarshal(w.Input, &one) == nil {
		a.Messages = []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: one}}}}
		return a, nil
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(w.Input, &raws); err != nil {
		return a, errors.New("input: a string or a list of items is required")
	}
	for i, raw := range raws {
		m, err := parseItem(raw)
		if err != nil {
			return a, fmt.Errorf("input[%d]: %w", i, err)
		}
		a.Messages = append(a.Messages, m)
	}
	a.Messages = mergeTurns(a.Messages)
	return a, nil
}

// parseItem reads one input item.
func parseItem(raw json.RawMessage) (m llm.Message, err error) {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return m, err
	}
	m.Role = llm.Assistant
	switch it.Type {
	case "message", "":
		m.Role = llm.Role(it.Role)
		m.Parts, err = parseContents(it.Content)
	case "reasoning":
		if it.Encrypted == "" {
			return m, errors.New("the reasoning item is not found: items are not persisted when `store` is false")
		}
		p := llm.Thinking{Provider: Provider, Opaque: raw}
		for _, s := range it.Summary {
			p.Text += s.Text
		}
		m.Parts = []llm.Part{p}
	case "function_call":
		var in json.RawMessage
		in, err = llm.Input([]byte(it.Arguments))
		m.Parts = []llm.Part{llm.Call{ID: it.CallID, Name: it.Name, Input: in}}
	case "function_call_output":
		r := llm.Result{ID: it.CallID}
		r.Parts, err = parseContents(it.Output)
		m = llm.Message{Role: llm.User, Parts: []llm.Part{r}}
	default:
		err = fmt.Errorf("unexpected item type %q", it.Type)
	}
	return m, err
}

// refuse writes an HTTP error.
func (responsesAPI) refuse(w http.ResponseWriter, status int, kind, text string) {
	chatAPI{}.refuse(w, status, kind, text)
}

// send writes an event with its number, as the vendor does.
func (responsesAPI) send(s *stream, name string, data object) {
	data["type"] = name
	data["sequence_number"] = s.n
	s.event(name, data)
}

// begin writes the beginning of a stream that will break off.
func (c responsesAPI) begin(s *stream, a wireRequest) {
	c.created(s, a.Model)
	c.send(s, "response.output_item.added", object{"output_index": 0,
		"item": object{"type": "message", "id": "item_0", "role": "assistant", "status": "in_progress",
			"content": []object{}}})
	c.send(s, "response.output_text.delta", object{"output_index": 0, "content_index": 0, "item_id": "item_0",
		"delta": "..."})
}

// created writes the first event of a stream.
func (c responsesAPI) created(s *stream, model string) {
	c.send(s, "response.created", object{"response": object{"id": "resp_1", "object": "response", "model": model,
		"status": "in_progress", "output": []object{}, "error": nil}})
}

// reply writes a whole reply, item by item.
func (c responsesAPI) reply(s *stream, _ wireRequest, r llm.Reply) {
	c.created(s, r.Model)
	var output []object
	// piecewise sends the events of one item: added, deltas, done.
	piecewise := func(it object, event, text string, more object) {
		i := len(output)
		it["id"] = fmt.Sprintf("item_%d", i)
		c.send(s, "response.output_item.added", object{"output_index": i,
			"item": object{"type": it["type"], "id": it["id"], "status": "in_progress"}})
		for _, p := range splitText(text) {
			d := object{"output_index": i, "item_id": it["id"], "delta": p}
			for k, v := range more {
				d[k] = v
			}
			c.send(s, event, d)
		}
		c.send(s, "response.output_item.done", object{"output_index": i, "item": it})
		output = append(output, it)
	}
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			piecewise(object{"type": "reasoning", "summary": []object{{"type": "summary_text", "text": p.Text}},
				"encrypted_content": signatureOf(p.Text)},
				"response.reasoning_summary_text.delta", p.Text, object{"summary_index": 0})
		case llm.Text:
			piecewise(object{"type": "message", "role": "assistant", "status": "completed",
				"content": []object{{"type": "output_text", "text": p.Text, "annotations": []object{}}}},
				"response.output_text.delta", p.Text, object{"content_index": 0})
		case llm.Call:
			piecewise(object{"type": "function_call", "status": "completed", "call_id": p.ID, "name": p.Name,
				"arguments": string(p.Input)},
				"response.function_call_arguments.delta", string(p.Input), nil)
		}
	}
	if output == nil {
		output = []object{}
	}
	u := r.Usage
	res := object{"id": "resp_1", "object": "response", "model": r.Model, "status": "completed", "output": output,
		"error": nil, "incomplete_details": nil,
		"usage": object{
			"input_tokens": u.Prompt(), "output_tokens": u.Output,
			"total_tokens":         u.Prompt() + u.Output,
			"input_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		}}
	reason := map[llm.Stop]string{llm.StopMax: "max_output_tokens", llm.StopRefused: "content_filter"}[r.Stop]
	if reason == "" {
		c.send(s, "response.completed", object{"response": res})
		return
	}
	res["status"], res["incomplete_details"] = "incomplete", object{"reason": reason}
	c.send(s, "response.incomplete", object{"response": res})
}
