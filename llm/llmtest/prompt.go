package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Piece is a part of a prompt: a tool, a part of the system prompt, or a message of the OpenAI formats or a block of
// one of the Messages API.
type Piece struct {
	Text string // JSON, with the role of a message in front
	Mark string // how long the client asks for a cache up to here: "5m", "1h", or "" for no mark
}

// Prompt is what of a request a vendor's cache compares: the pieces in the order in which the model reads them, which
// is tools, system prompt, messages. Other fields of a request, such as the user's id, are no part of it.
type Prompt struct {
	Model  string
	Key    string // by which the vendor routes; "" for none
	Pieces []Piece
}

// NewPrompt returns the prompt of a request that was sent to the path.
func NewPrompt(path string, body []byte) (p Prompt, err error) {
	var q struct {
		Model        string            `json:"model"`
		Key          string            `json:"prompt_cache_key"`
		User         string            `json:"user"`
		Tools        []json.RawMessage `json:"tools"`
		System       json.RawMessage   `json:"system"`
		Instructions json.RawMessage   `json:"instructions"`
		Messages     []json.RawMessage `json:"messages"`
		Input        []json.RawMessage `json:"input"`
	}
	if err := decodeBody(body, &q); err != nil {
		return p, err
	}
	p.Model, p.Key = q.Model, cmp.Or(q.Key, q.User)
	add := func(before string, raws ...json.RawMessage) {
		for _, raw := range raws {
			piece, errPiece := newPiece(before, raw)
			p.Pieces, err = append(p.Pieces, piece), cmp.Or(err, errPiece)
		}
	}
	add("", q.Tools...)
	if !strings.HasSuffix(path, "/messages") {
		if len(q.Instructions) > 0 {
			add("", q.Instructions)
		}
		add("", append(q.Messages, q.Input...)...)
		return p, err
	}
	add("system", listOf(q.System)...)
	for _, raw := range q.Messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := decodeBody(raw, &m); err != nil {
			return p, err
		}
		add(m.Role, listOf(m.Content)...)
	}
	return p, err
}

// listOf returns the elements of a list, or the value itself if it is none.
func listOf(raw json.RawMessage) (all []json.RawMessage) {
	if len(raw) == 0 || json.Unmarshal(raw, &all) == nil {
		return all
	}
	return []json.RawMessage{raw}
}

// newPiece returns a piece without its mark, which is no part of what the vendor compares.
func newPiece(before string, raw json.RawMessage) (Piece, error) {
	var marked struct {
		Cache *struct {
			TTL string `json:"ttl"`
		} `json:"cache_control"`
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return Piece{}, fmt.Errorf("a part of the request is no JSON: %w", err)
	}
	_ = json.Unmarshal(raw, &marked) // what is no object has no mark
	text, err := json.Marshal(withoutMarks(value))
	p := Piece{Text: before + string(text)}
	if marked.Cache != nil {
		p.Mark = cmp.Or(marked.Cache.TTL, "5m")
	}
	return p, err
}

// Text returns the whole prompt.
func (p Prompt) Text() string {
	var b strings.Builder
	for _, piece := range p.Pieces {
		b.WriteString(piece.Text + "\n")
	}
	return b.String()
}
