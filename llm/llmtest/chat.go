package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"muster/llm"
)

// chatAPI is the Chat Completions API.
type chatAPI struct{}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// parse reads a request. It refuses what the real server refuses.
func (chatAPI) parse(body []byte) (a wireRequest, err error) {
	var w struct {
		Model         string        `json:"model"`
		Messages      []chatMessage `json:"messages"`
		Tools         []chatTool    `json:"tools"`
		MaxTokens     int           `json:"max_tokens"`
		MaxCompletion int           `json:"max_completion_tokens"`
		Stream        bool          `json:"stream"`
		StreamOptions struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		User     string `json:"user"`
		CacheKey string `json:"prompt_cache_key"`
	}
	if err = decodeBody(body, &w); err != nil {
		return a, err
	}
	switch {
	case !w.Stream:
		return a, errors.New("stream: only streaming is served here")
	case w.Model == "":
		return a, errors.New("you must provide a model parameter")
	}
	a.Model, a.Usage = w.Model, w.StreamOptions.Usage
	a.MaxTokens = max(w.MaxTokens, w.MaxCompletion)
	a.setKeys(w.User, w.CacheKey)
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, llm.Spec{Name: t.Function.Name, Description: t.Function.Description,
			Schema: t.Function.Parameters})
	}
	for i, m := range w.Messages {
		if m.Role == "system" || m.Role == "developer" {
			ss, err := parseTexts(m.Content)
			if err != nil {
				return a, fmt.Errorf("messages[%d]: %w", i, err)
			}
			a.System = append(a.System, ss...)
			continue
		}
		msg, err := m.message()
		if err != nil {
			return a, fmt.Errorf("messages[%d]: %w", i, err)
		}
		a.Messages = append(a.Messages, msg)
	}
	a.Messages = mergeTurns(a.Messages)
	return a, nil
}

// message converts one message.
func (m chatMessage) message() (llm.Message, error) {
	ps, err := parseContents(m.Content)
	if err != nil {
		return llm.Message{}, err
	}
	switch m.Role {
	case "user":
		return llm.Message{Role: llm.User, Parts: ps}, nil
	case "tool":
		return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{ID: m.ToolCallID, Parts: ps}}}, nil
	case "assistant":
		out := llm.Message{Role: llm.Assistant}
		if m.Reasoning != "" {
			out.Parts = append(out.Parts, llm.Thinking{Text: m.Reasoning, Provider: Provider})
		}
		out.Parts = append(out.Parts, ps...)
		for _, c := range m.ToolCalls {
			in, err := llm.Input([]byte(c.Function.Arguments))
			if err != nil {
				return out, err
			}
			out.Parts = append(out.Parts, llm.Call{ID: c.ID, Name: c.Function.Name, Input: in})
		}
		if len(out.Parts) == 0 {
			return out, errors.New("an assistant message needs content or tool_calls")
		}
		return out, nil
	}
	return llm.Message{}, fmt.Errorf("invalid role %q", m.Role)
}

// parseContents reads the content of a message of either OpenAI API.
func parseContents(raw json.RawMessage) (out []llm.Part, err error) {
	var one string
	if len(raw) == 0 || json.Unmarshal(raw, &one) == nil {
		if one != "" {
			out = append(out, llm.Text{Text: one})
		}
		return out, nil
	}
	var blocks []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		ImageURL json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, err
	}
	for _, b := range blocks {
		switch b.Type {
		case "text", "input_text", "output_text":
			out = append(out, llm.Text{Text: b.Text})
		case "image_url", "input_image":
			var url string
			if json.Unmarshal(b.ImageURL, &url) != nil {
				var w struct{ URL string }
				if err := json.Unmarshal(b.ImageURL, &w); err != nil {
					return nil, err
				}
				url = w.URL
			}
			i, err := parseDataURL(url)
			if err != nil {
				return nil, err
			}
			out = append(out, i)
		default:
			return nil, fmt.Errorf("unexpected content type %q", b.Type)
		}
	}
	return out, nil
}

// refuse writes an HTTP error.
func (chatAPI) refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": text, "type": kind, "code": kind, "param": nil}})
}

// chunk writes one event.
func (chatAPI) chunk(s *stream, model string, delta object, finish any) {
	s.event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
}

// begin writes the beginning of a stream that will break off.
func (c chatAPI) begin(s *stream, a wireRequest) {
	c.chunk(s, a.Model, object{"role": "assistant", "content": "..."}, nil)
}

// reply writes a whole reply, and its usage if the request asked for it.
func (c chatAPI) reply(s *stream, a wireRequest, r llm.Reply) {
	c.chunk(s, r.Model, object{"role": "assistant", "content": ""}, nil)
	calls := 0
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			for _, t := range splitText(p.Text) {
				c.chunk(s, r.Model, object{"reasoning_content": t}, nil)
			}
		case llm.Text:
			for _, t := range splitText(p.Text) {
				c.chunk(s, r.Model, object{"content": t}, nil)
			}
		case llm.Call:
			c.chunk(s, r.Model, object{"tool_calls": []object{{"index": calls, "id": p.ID, "type": "function",
				"function": object{"name": p.Name, "arguments": ""}}}}, nil)
			for _, t := range splitText(string(p.Input)) {
				c.chunk(s, r.Model, object{"tool_calls": []object{{"index": calls,
					"function": object{"arguments": t}}}}, nil)
			}
			calls++
		}
	}
	finish := map[llm.Stop]string{llm.StopTools: "tool_calls", llm.StopMax: "length",
		llm.StopRefused: "content_filter"}[r.Stop]
	if finish == "" {
		finish = "stop"
	}
	c.chunk(s, r.Model, object{}, finish)
	if a.Usage {
		u := r.Usage
		s.event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []object{},
			"usage": object{
				"prompt_tokens": u.Prompt(), "completion_tokens": u.Output,
				"total_tokens":          u.Prompt() + u.Output,
				"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			}})
	}
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}
