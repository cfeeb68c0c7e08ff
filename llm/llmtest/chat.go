package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"muster/llm"
)

// chatAPI is Chat Completions. System and developer messages become Request.System.
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

func (chatAPI) parse(body []byte) (a asked, err error) {
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
	if err = decode(body, &w); err != nil {
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
	a.CacheKey = w.CacheKey
	if a.CacheKey == "" {
		a.CacheKey = w.User
	}
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, llm.Spec{Name: t.Function.Name, Description: t.Function.Description,
			Schema: t.Function.Parameters})
	}
	for i, m := range w.Messages {
		if m.Role == "system" || m.Role == "developer" {
			ss, err := texts(m.Content)
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
	a.Messages = merged(a.Messages)
	return a, nil
}

func (m chatMessage) message() (llm.Message, error) {
	ps, err := contents(m.Content)
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

// contents reads the content of a message of either OpenAI API.
func contents(raw json.RawMessage) (out []llm.Part, err error) {
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
			i, err := dataURL(url)
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

func (chatAPI) refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o{"error": o{"message": text, "type": kind, "code": kind, "param": nil}})
}

func (chatAPI) chunk(s *stream, model string, delta o, finish any) {
	s.event("", o{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
		"choices": []o{{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (c chatAPI) begin(s *stream, a asked) {
	c.chunk(s, a.Model, o{"role": "assistant", "content": "..."}, nil)
}

func (c chatAPI) reply(s *stream, a asked, r llm.Reply) {
	c.chunk(s, r.Model, o{"role": "assistant", "content": ""}, nil)
	calls := 0
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			for _, t := range pieces(p.Text) {
				c.chunk(s, r.Model, o{"reasoning_content": t}, nil)
			}
		case llm.Text:
			for _, t := range pieces(p.Text) {
				c.chunk(s, r.Model, o{"content": t}, nil)
			}
		case llm.Call:
			c.chunk(s, r.Model, o{"tool_calls": []o{{"index": calls, "id": p.ID, "type": "function",
				"function": o{"name": p.Name, "arguments": ""}}}}, nil)
			for _, t := range pieces(string(p.Input)) {
				c.chunk(s, r.Model, o{"tool_calls": []o{{"index": calls, "function": o{"arguments": t}}}}, nil)
			}
			calls++
		}
	}
	finish := map[llm.Stop]string{llm.StopTools: "tool_calls", llm.StopMax: "length",
		llm.StopRefused: "content_filter"}[r.Stop]
	if finish == "" {
		finish = "stop"
	}
	c.chunk(s, r.Model, o{}, finish)
	if a.Usage {
		u := r.Usage
		s.event("", o{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []o{},
			"usage": o{
				"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output,
				"total_tokens":          u.Input + u.CacheRead + u.CacheWrite + u.Output,
				"prompt_tokens_details": o{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			}})
	}
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}
