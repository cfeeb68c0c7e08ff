package redact

import (
	"bytes"
	"context"
	"encoding/json"

	"muster/llm"
)

// Model returns m with the secrets hidden in its replies, in what streams, and in its errors. A conversation thus never
// has one, and no tool is called with one. Without secrets it returns m.
func (s *Secrets) Model(m llm.Model) llm.Model {
	if s == nil {
		return m
	}
	return model{m, s}
}

// model is a model whose words have no secrets.
type model struct {
	llm.Model
	secrets *Secrets
}

// Reply asks the model.
func (m model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	d := deltas{emit: emit, secrets: m.secrets}
	reply, err := m.Model.Reply(ctx, r, d.add)
	if err != nil {
		return reply, m.secrets.Error(err)
	}
	d.flush()
	reply.Message.Parts = m.secrets.Parts(reply.Message.Parts)
	return reply, nil
}

// deltas hides secrets in what streams in. The end of a text is held back while it may be the beginning of a secret.
type deltas struct {
	emit    func(llm.Delta)
	secrets *Secrets
	// part is the one whose text and thinking come in.
	part        int
	text, think stream
}

// add passes a delta on, together with what was held back.
func (d *deltas) add(x llm.Delta) {
	switch {
	case x.Again: // what is held back is void too
		d.text, d.think = stream{}, stream{}
		d.emit(x)
		return
	case x == llm.Delta{Part: x.Part}: // only a sign of life
		d.emit(x)
		return
	case d.part != x.Part:
		d.flush()
	}
	d.part = x.Part
	x.Text = string(d.text.add(d.secrets, []byte(x.Text)))
	x.Think = string(d.think.add(d.secrets, []byte(x.Think)))
	d.emit(x)
}

func (d *deltas) flush() {
	x := llm.Delta{Part: d.part, Text: string(d.text.flush(d.secrets)), Think: string(d.think.flush(d.secrets))}
	if x.Text+x.Think != "" {
		d.emit(x)
	}
}

// Parts returns the parts with the secrets hidden in them. The parts that it was given stay as they are.
func (s *Secrets) Parts(parts llm.Parts) llm.Parts {
	if s == nil {
		return parts
	}
	var out llm.Parts
	for i, p := range parts {
		hidden, changed := s.part(p)
		if changed && out == nil {
			out = append(make(llm.Parts, 0, len(parts)), parts[:i]...)
		}
		if out != nil {
			out = append(out, hidden)
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// part returns a part with the secrets hidden in it, and whether there were any.
func (s *Secrets) part(p llm.Part) (_ llm.Part, changed bool) {
	switch p := p.(type) {
	case llm.Text:
		text := s.String(p.Text)
		changed, p.Text = text != p.Text, text
		return p, changed
	case llm.Thinking:
		// What the provider has signed is another text now: it is kept for people, and not sent back.
		if text := s.String(p.Text); text != p.Text {
			return llm.Thinking{Text: text, Provider: p.Provider}, true
		}
	case llm.Call:
		id, name, input, malformed := s.String(p.ID), s.String(p.Name), s.JSON(p.Input), s.String(p.Malformed)
		if id != p.ID || name != p.Name || !bytes.Equal(input, p.Input) || malformed != p.Malformed {
			return llm.Call{ID: id, Name: name, Input: input, Malformed: malformed}, true
		}
	case llm.Result:
		r := s.Result(p)
		return r, r.Text() != p.Text()
	}
	return p, false
}

// Result returns a tool's result with the secrets hidden in its texts.
func (s *Secrets) Result(r llm.Result) llm.Result {
	r.Parts = s.Parts(r.Parts)
	return r
}

// JSON returns a JSON value with the secrets hidden in its strings and names, also where it spells them with escapes.
// What has none is returned as it is, byte for byte.
func (s *Secrets) JSON(data json.RawMessage) json.RawMessage {
	if s == nil {
		return data
	}
	// An escape can stand for any letter. Only a text with one needs to be decoded.
	if bytes.Contains(data, []byte(`\u`)) || bytes.Contains(data, []byte(`\/`)) {
		if hidden, ok := s.decoded(data); ok {
			return hidden
		}
	}
	return s.record(data)
}

// record is JSON for what this program has encoded itself, which spells no letter as an escape. It decodes nothing
// without need.
func (s *Secrets) record(data []byte) []byte {
	hidden := s.Bytes(data)
	// A piece of a secret may end inside of an escape, or be a part of a number.
	if len(hidden) != len(data) && !json.Valid(hidden) {
		if again, ok := s.decoded(data); ok {
			return again
		}
		return data
	}
	return hidden
}

// decoded hides the secrets in what a JSON value means. ok is false if there are none, and for what is no JSON.
func (s *Secrets) decoded(data []byte) (hidden []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a number stays as it was written
	var v any
	if d.Decode(&v) != nil || !s.hideIn(&v) {
		return nil, false
	}
	hidden, err := json.Marshal(v)
	return hidden, err == nil
}

// hideIn hides the secrets in the strings and names of a decoded JSON value, and reports whether there were any.
func (s *Secrets) hideIn(v *any) (changed bool) {
	switch x := (*v).(type) {
	case string:
		hidden := s.String(x)
		changed, *v = hidden != x, hidden
	case []any:
		for i := range x {
			changed = s.hideIn(&x[i]) || changed
		}
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, value := range x {
			hidden := s.String(name)
			changed = s.hideIn(&value) || changed || hidden != name
			out[hidden] = value
		}
		*v = out
	}
	return changed
}

// Error returns err with the secrets hidden in its text. What it wraps can still be matched. An error without secrets
// is returned as it is.
func (s *Secrets) Error(err error) error {
	if s == nil || err == nil {
		return err
	}
	text := err.Error()
	hidden := s.String(text)
	if hidden == text {
		return err
	}
	//nolint:errorlint // Only the outermost error has the text that is shown.
	if e, ok := err.(*llm.Error); ok && e.Err != nil {
		shown := *e
		shown.Err = s.Error(e.Err)
		return &shown
	}
	return &hiddenError{hidden, err}
}

// hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

// Error returns the text without secrets.
func (e *hiddenError) Error() string { return e.text }

// Unwrap returns the error, for errors.Is and errors.As.
func (e *hiddenError) Unwrap() error { return e.err }
