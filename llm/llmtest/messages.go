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

func (messagesAPI) parse(body []byte) (a asked, err error) {
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
	if err = decode(body, &w); err != nil {
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
	if a.System, err = texts(w.System); err != nil {
		return a, fmt.Errorf("system: %w", err)
	}
	for i, m := range w.Messages {
		ps, err := parts(m.Content)
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

func parts(raw json.RawMessage) (out []llm.Part, err error) {
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
		p, err := part(b, raw)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func part(b block, raw json.RawMessage) (llm.Part, error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return nil, errors.New("text content blocks must contain non-whitespace text")
		}
		return llm.Text{Text: b.Text}, nil
	case "image":
		return llm.Image{Media: b.Source.Media, Data: b.Source.Data}, nil
	case "thinking":
		if b.Signature != sign(b.Thinking) {
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
		ps, err := parts(b.Content)
		r.Parts = ps
		return r, err
	}
	return nil, fmt.Errorf("unexpected block type %q", b.Type)
}

// sign is the signature of a thinking text, so that a changed one is noticed as
// the real server would.
func sign(thinking string) string {
	sum := sha256.Sum256([]byte(thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func base64Bytes(s string) ([]byte, error) { return base64.StdEncoding.DecodeString(s) }

func (messagesAPI) refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o{"type": "error", "error": o{"type": kind, "message": text}})
}

func (messagesAPI) begin(s *stream, a asked) {
	messagesAPI{}.start(s, a.Model, llm.Usage{})
	s.event("content_block_start", o{"type": "content_block_start", "index": 0,
		"content_block": o{"type": "text", "text": ""}})
	s.event("content_block_delta", o{"type": "content_block_delta", "index": 0,
		"delta": o{"type": "text_delta", "text": "..."}})
}

func (messagesAPI) start(s *stream, model string, u llm.Usage) {
	s.event("message_start", o{"type": "message_start", "message": o{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": o{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead,
			"cache_creation_input_tokens": u.CacheWrite},
	}})
	s.event("ping", o{"type": "ping"})
}

func (messagesAPI) reply(s *stream, _ asked, r llm.Reply) {
	messagesAPI{}.start(s, r.Model, r.Usage)
	i := 0
	send := func(start o, deltas ...o) {
		s.event("content_block_start", o{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			s.event("content_block_delta", o{"type": "content_block_delta", "index": i, "delta": d})
		}
		s.event("content_block_stop", o{"type": "content_block_stop", "index": i})
		i++
	}
	in := func(kind, key, text string) (ds []o) {
		for _, p := range pieces(text) {
			ds = append(ds, o{"type": kind, key: p})
		}
		return ds
	}
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			send(o{"type": "text", "text": ""}, in("text_delta", "text", p.Text)...)
		case llm.Thinking:
			var b struct{ Type, Data string }
			if json.Unmarshal(p.Opaque, &b) == nil && b.Type == "redacted_thinking" {
				send(o{"type": b.Type, "data": b.Data})
				continue
			}
			ds := append(in("thinking_delta", "thinking", p.Text),
				o{"type": "signature_delta", "signature": sign(p.Text)})
			send(o{"type": "thinking", "thinking": "", "signature": ""}, ds...)
		case llm.Call:
			send(o{"type": "tool_use", "id": p.ID, "name": p.Name, "input": o{}},
				in("input_json_delta", "partial_json", string(p.Input))...)
		}
	}
	reason := map[llm.Stop]string{
		llm.StopTools: "tool_use", llm.StopMax: "max_tokens", llm.StopRefused: "refusal", llm.StopPaused: "pause_turn",
	}[r.Stop]
	if reason == "" {
		reason = "end_turn"
	}
	s.event("message_delta", o{"type": "message_delta", "delta": o{"stop_reason": reason, "stop_sequence": nil},
		"usage": o{"output_tokens": r.Usage.Output}})
	s.event("message_stop", o{"type": "message_stop"})
}
