package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The JSON of a Message is what transcripts store, so it only ever grows: a
// message is {"role", "parts"}, a part {"type", "v"} with v the part's own
// fields, a result's parts are nested in the same way. A part of an unknown type
// is an error, not a loss: a newer program wrote it.

type tagged struct {
	Type string          `json:"type"`
	V    json.RawMessage `json:"v"`
}

type message struct {
	Role  Role     `json:"role"`
	Parts []tagged `json:"parts"`
}

// MarshalJSON gives the stored form of m.
func (m Message) MarshalJSON() ([]byte, error) {
	ps, err := tag(m.Parts)
	if err != nil {
		return nil, err
	}
	return plain(message{m.Role, ps})
}

// UnmarshalJSON reads the stored form.
func (m *Message) UnmarshalJSON(b []byte) error {
	var w message
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	ps, err := untag(w.Parts)
	if err != nil {
		return err
	}
	*m = Message{Role: w.Role, Parts: ps}
	return nil
}

// plain encodes without HTML escapes: people read transcripts.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

type bareResult Result // without the methods, for its plain fields

type result struct {
	bareResult
	Parts []tagged `json:"parts"`
}

// MarshalJSON gives the stored form of r, its parts included.
func (r Result) MarshalJSON() ([]byte, error) {
	ps, err := tag(r.Parts)
	if err != nil {
		return nil, err
	}
	return plain(result{bareResult(r), ps})
}

// UnmarshalJSON reads the stored form.
func (r *Result) UnmarshalJSON(b []byte) error {
	var w result
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	ps, err := untag(w.Parts)
	if err != nil {
		return err
	}
	*r = Result(w.bareResult)
	r.Parts = ps
	return nil
}

func tag(ps []Part) ([]tagged, error) {
	out := make([]tagged, 0, len(ps))
	for _, p := range ps {
		if c, ok := p.(Call); ok && len(c.Input) == 0 {
			c.Input = json.RawMessage("{}")
			p = c
		}
		v, err := plain(p)
		if err != nil {
			return nil, err
		}
		out = append(out, tagged{p.part(), v})
	}
	return out, nil
}

func untag(ts []tagged) (out []Part, err error) {
	for _, t := range ts {
		var p Part
		switch t.Type {
		case "text":
			p, err = untagAs[Text](t)
		case "thinking":
			p, err = untagAs[Thinking](t)
		case "image":
			p, err = untagAs[Image](t)
		case "call":
			p, err = untagAs[Call](t)
		case "result":
			p, err = untagAs[Result](t)
		default:
			err = fmt.Errorf("part of unknown type %q", t.Type)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func untagAs[T Part](t tagged) (Part, error) {
	var v T
	err := json.Unmarshal(t.V, &v)
	return v, err
}

// Input makes the Input of a Call from what a provider sent: always a JSON
// object, in the one spelling that storing and reading again does not change, so
// that a resumed conversation is sent with the same bytes. Nothing and null
// become {}. An object inside a JSON string (some servers encode twice) is taken
// out. Everything else is an error.
func Input(raw []byte) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] == '"' {
		var inner string
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, err
		}
		raw = bytes.TrimSpace([]byte(inner))
		if len(raw) == 0 {
			return json.RawMessage("{}"), nil
		}
	}
	if raw[0] != '{' {
		return nil, errors.New("the input is not a JSON object")
	}
	return json.Marshal(json.RawMessage(raw))
}
