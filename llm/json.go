package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// tagged is the stored form of a part: the name of its type, and its own fields in v.
type tagged struct {
	Type string `json:"type"`
	V    any    `json:"v"`
}

// MarshalJSON returns the stored form of ps, which transcripts hold, so it only ever grows. The parts of a
// Result are nested in the same way.
func (ps Parts) MarshalJSON() ([]byte, error) {
	out := make([]tagged, len(ps))
	for i, p := range ps {
		if c, ok := p.(Call); ok && len(c.Input) == 0 {
			c.Input = json.RawMessage("{}")
			p = c
		}
		out[i] = tagged{p.part(), p}
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
	var stored []struct {
		Type string
		V    json.RawMessage
	}
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
