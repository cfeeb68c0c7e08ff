package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"muster/llm"
)

// messagesAPI is the Messages API.
type messagesAPI struct{}

// block is a content block of the Messages API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		Media string `json:"media_type"`
		Data  []byte `json:"data"`
	} `json:"source"`
}

// parse reads a request. It refuses what the real server refuses.
func (messagesAPI) parse(body []byte) (a wireRequest, err error) {
	var w struct {
		Model     string          `json:"model"`
		MaxTokens int             `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		System    json.RawMessage `json:"system"`
		Tools     []llm.Spec      `json:"tools"`
		Metadata  struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
		Messages []struct {
			Role    llm.Role        `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err = decodeBody(body, &w); err != nil {
		return a, err
	}
	switch {
	case !w.Stream:
		return a, errors.New("stream: only streaming is served here")
	case w.Model == "":
		return a, errors.New("model: field required")
	case w.MaxTokens < 1:
		return a, errors.New("max_tokens: must be at least 1")
	case strings.Count(string(body), `"cache_control"`) > 4:
		// Counted in the text: nothing but a breakpoint has that word as a key here.
		return a, errors.New("a maximum of 4 blocks with cache_control may be provided")
	}
	a.Model = w.Model
	a.Tools, a.MaxTokens, a.CacheKey = w.Tools, w.MaxTokens, w.Metadata.UserID
	a.CacheLong = strings.Contains(string(body), `"ttl":"1h"`) // as a key outside of a string it is nowhere else
	if a.System, err = parseTexts(w.System); err != nil {
		return a, fmt.Errorf("system: %w", err)
	}
	for i, m := range w.Messages {
		ps, err := parseParts(m.Content)
		if err != nil {
			return a, fmt.Errorf("messages.%d: %w", i, err)
		}
		if m.Role != llm.User && m.Role != llm.Assistant {
			return a, fmt.Errorf("messages.%d: unexpected role %q", i, m.Role)
		}
		a.Messages = append(a.Messages, llm.Message{Role: m.Role, Parts: ps})
	}
	return a, nil
}

// parseParts reads the content of a message: a string or a list of blocks.
func parseParts(raw json.RawMessage) (out []llm.Part, err error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []llm.Part{llm.Text{Text: one}}, nil
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, errors.New("content: a string or a list of blocks is required")
	}
	if len(raws) == 0 {
		return nil, errors.New("content: at least one block is required")
	}
	for _, raw := range raws {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, err
		}
		p, err := parsePart(b, raw)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// parsePart reads one block. raw is the block as it came, which thinking keeps.
func parsePart(b block, raw json.RawMessage) (llm.Part, error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return nil, errors.New("text content blocks must contain non-whitespace text")
		}
		return llm.Text{Text: b.Text}, nil
	case "image":
		return llm.Image{Media: b.Source.Media, Data: b.Source.Data}, nil
	case "thinking":
		if b.Signature != signatureOf(b.Thinking) {
			return nil, errors.New("invalid `signature` in `thinking` block")
		}
		return llm.Thinking{Text: b.Thinking, Provider: Provider, Opaque: raw}, nil
	case "redacted_thinking":
		return llm.Thinking{Provider: Provider, Opaque: raw}, nil
	case "tool_use":
		if in := strings.TrimSpace(string(b.Input)); !strings.HasPrefix(in, "{") {
			return nil, errors.New("tool_use.input: Input should be a valid dictionary")
		}
		in, err := llm.Input(b.Input)
		return llm.Call{ID: b.ID, Name: b.Name, Input: in}, err
	case "tool_result":
		r := llm.Result{ID: b.ToolUseID, IsError: b.IsError}
		if len(b.Content) == 0 {
			return r, nil
		}
		ps, err := parseParts(b.Content)
		r.Parts = ps
		return r, err
	}
	return nil, fmt.Errorf("unexpected block type %q", b.Type)
}

// signatureOf returns the signature of a thinking text, so that a changed text is noticed as by the real server.
func signatureOf(thinking string) string {
	sum := sha256.Sum256([]byte(thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// refuse writes an HTTP error.
func (messagesAPI) refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": kind, "message": text}})
}

// begin writes the beginning of a stream that will break off.
func (messagesAPI) begin(s *stream, a wireRequest) {
	messagesAPI{}.start(s, a.Model, llm.Usage{})
	s.event("content_block_start", object{"type": "content_block_start", "index": 0,
		"content_block": object{"type": "text", "text": ""}})
	s.event("content_block_delta", object{"type": "content_block_delta", "index": 0,
		"delta": object{"type": "text_delta", "text": "..."}})
}

// start writes the events before the first block.
func (messagesAPI) start(s *stream, model string, u llm.Usage) {
	s.event("message_start", object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead,
			"cache_creation_input_tokens": u.CacheWrite + u.CacheWriteLong,
			"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite,
				"ephemeral_1h_input_tokens": u.CacheWriteLong}},
	}})
	s.event("ping", object{"type": "ping"})
}

// reply writes a whole reply, each part as a block in several pieces.
func (messagesAPI) reply(s *stream, _ wireRequest, r llm.Reply) {
	messagesAPI{}.start(s, r.Model, r.Usage)
	i := 0
	send := func(start object, deltas ...object) {
		s.event("content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			s.event("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": d})
		}
		s.event("content_block_stop", object{"type": "content_block_stop", "index": i})
		i++
	}
	in := func(kind, key, text string) (ds []object) {
		for _, p := range splitText(text) {
			ds = append(ds, object{"type": kind, key: p})
		}
		return ds
	}
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			send(object{"type": "text", "text": ""}, in("text_delta", "text", p.Text)...)
		case llm.Thinking:
			var b struct{ Type, Data string }
			if json.Unmarshal(p.Opaque, &b) == nil && b.Type == "redacted_thinking" {
				send(object{"type": b.Type, "data": b.Data})
				continue
			}
			ds := append(in("thinking_delta", "thinking", p.Text),
				object{"type": "signature_delta", "signature": signatureOf(p.Text)})
			send(object{"type": "thinking", "thinking": "", "signature": ""}, ds...)
		case llm.Call:
			send(object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": object{}},
				in("input_json_delta", "partial_json", string(p.Input))...)
		}
	}
	reason := map[llm.Stop]string{
		llm.StopTools: "tool_use", llm.StopMax: "max_tokens", llm.StopRefused: "refusal", llm.StopPaused: "pause_turn",
	}[r.Stop]
	if reason == "" {
		reason = "end_turn"
	}
	s.event("message_delta", object{"type": "message_delta",
		"delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": r.Usage.Output}})
	s.event("message_stop", object{"type": "message_stop"})
}
