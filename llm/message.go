// Package llm holds the words of a conversation with a model, and the contracts
// Model and Tool. It knows no vendor and no wire format: the adapters below it
// translate. Standard library only.
package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Part is a piece of a message: Text, Thinking, Image, Call or Result. The set is closed.
type Part interface{ part() string }

// Parts are the parts of a message or a result. Their JSON is {"type", "v"} for each, with v the part's own
// fields.
type Parts []Part

type (
	// Text is what one side said.
	Text struct {
		Text string `json:"text"`
	}

	// Thinking is reasoning that a model showed or sealed. Provider names the
	// endpoint that made it: only that one gets it back. Opaque is what the
	// provider wants back unchanged (a signature, an encrypted item); a Thinking
	// without it is kept for people and never sent.
	Thinking struct {
		Text     string          `json:"text,omitempty"`
		Provider string          `json:"provider"`
		Opaque   json.RawMessage `json:"opaque,omitempty"`
	}

	// Image is a picture; Media is its media type, such as image/png.
	Image struct {
		Media string `json:"media"`
		Data  []byte `json:"data"`
	}

	// Call is a tool call. Input is a JSON object as Input makes it: a call from an
	// unfinished message never gets here. Malformed is what a finished message had in
	// place of such an object, and Input is empty then: the call never runs.
	// Opaque is the provider's own, sent back to it unchanged.
	Call struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Opaque json.RawMessage `json:"opaque,omitempty"`

		Malformed string `json:"malformed,omitempty"`
	}

	// Result answers the Call with the same ID. Its Parts are Text and Image.
	// Files name what is too large to send.
	Result struct {
		ID      string   `json:"id"`
		IsError bool     `json:"is_error,omitempty"`
		Files   []string `json:"files,omitempty"`
		Parts   Parts    `json:"parts"`
	}
)

func (Text) part() string     { return "text" }
func (Thinking) part() string { return "thinking" }
func (Image) part() string    { return "image" }
func (Call) part() string     { return "call" }
func (Result) part() string   { return "result" }

// Text is the text of r, its parts joined by newlines; images are left out.
func (r Result) Text() string { return r.Parts.Text() }

// Role says whose message it is.
type Role string

const (
	// User is the runtime's side: what the model is told, and the results of its calls.
	User Role = "user"
	// Assistant is the model's side.
	Assistant Role = "assistant"
)

// Message is one message of a conversation. In a user message results come
// before everything else, in the order of the calls they answer.
type Message struct {
	Role  Role  `json:"role"`
	Parts Parts `json:"parts"`
}

// Calls are the tool calls of m, in order.
func (m Message) Calls() (cs []Call) {
	for _, p := range m.Parts {
		if c, ok := p.(Call); ok {
			cs = append(cs, c)
		}
	}
	return cs
}

// Size is about how many bytes ps need: those of their texts, images and inputs.
func (ps Parts) Size() (n int) {
	for _, p := range ps {
		switch p := p.(type) {
		case Text:
			n += len(p.Text)
		case Thinking:
			n += len(p.Text) + len(p.Opaque)
		case Image:
			n += len(p.Data)
		case Call:
			n += len(p.Input) + len(p.Opaque) + len(p.Malformed)
		case Result:
			n += p.Parts.Size()
		}
	}
	return n
}

// Text is the text of m, its parts joined by newlines; thinking, calls, results
// and images are left out.
func (m Message) Text() string { return m.Parts.Text() }

// Text is the text in ps, joined by newlines; parts that are not Text are left out.
func (ps Parts) Text() string {
	var ts []string
	for _, p := range ps {
		if t, ok := p.(Text); ok {
			ts = append(ts, t.Text)
		}
	}
	return strings.Join(ts, "\n")
}

// tagged is the stored form of a part: the name of its type, and its own fields in v.
type tagged[V any] struct {
	Type string `json:"type"`
	V    V      `json:"v"`
}

// MarshalJSON returns the stored form of ps, which transcripts hold, so it only ever grows. The parts of a
// Result are nested in the same way.
func (ps Parts) MarshalJSON() ([]byte, error) {
	out := make([]tagged[any], len(ps))
	for i, p := range ps {
		if c, ok := p.(Call); ok && len(c.Input) == 0 {
			c.Input = json.RawMessage("{}")
			p = c
		}
		out[i] = tagged[any]{p.part(), p}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // people read transcripts
	err := e.Encode(out)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON reads the stored form. A part of an unknown type is an error, not a loss: a newer program
// wrote it.
func (ps *Parts) UnmarshalJSON(b []byte) error {
	var stored []tagged[json.RawMessage]
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*ps = nil
	for _, s := range stored {
		decode := decoders[s.Type]
		if decode == nil {
			return fmt.Errorf("part of unknown type %q", s.Type)
		}
		p, err := decode(s.V)
		if err != nil {
			return err
		}
		*ps = append(*ps, p)
	}
	return nil
}

// decoders read the fields of a part, by the name of its type.
var decoders = map[string]func(data []byte) (Part, error){
	"text": decodeAs[Text], "thinking": decodeAs[Thinking], "image": decodeAs[Image],
	"call": decodeAs[Call], "result": decodeAs[Result],
}

// decodeAs reads the fields of a part of type T.
func decodeAs[T Part](data []byte) (Part, error) {
	var p T
	err := json.Unmarshal(data, &p)
	return p, err
}

// Input makes the Input of a Call from what a provider sent: always a JSON object, in the one spelling that
// storing and reading again does not change, so that a resumed conversation is sent with the same bytes.
// Nothing and null become {}. An object inside a JSON string (some servers encode twice) is taken out.
// Everything else is an error.
func Input(raw []byte) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte(`"`)) {
		var inner string
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, err
		}
		raw = bytes.TrimSpace([]byte(inner))
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}"), nil
	case raw[0] != '{':
		return nil, errors.New("the input is not a JSON object")
	}
	return json.Marshal(json.RawMessage(raw))
}
