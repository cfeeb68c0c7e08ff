package journal

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"muster"
	"muster/internal/flat"
)

// decoder reads events. The names that they have in common it keeps once.
type decoder struct {
	words  map[string]string // kinds, members
	fields map[string]*field // without what for encoding/json could be another name for ours
	first  field             // none, with the one after it
}

// maxNames is how many names are kept: other programs' lines may have any.
const maxNames = 200

func (d *decoder) decode(data []byte) (muster.Event, error) {
	e, ok := d.plain(data)
	if !ok {
		e = muster.Event{}
		if err := json.Unmarshal(data, &e); err != nil {
			return e, muster.Errorf(muster.Corrupt, "a line of the journal is not an event: %w", err)
		}
	}
	if e.Kind == "" {
		return e, muster.Errorf(muster.Corrupt, "a line of the journal names no event")
	}
	return e, nil
}

// plain reads a line as we write it, in one pass, most of them without a look at each value. False: it is to be read the slow way.
func (d *decoder) plain(data []byte) (e muster.Event, ok bool) {
	if !utf8.Valid(data) {
		return e, false
	}
	if e, ok = d.quick(data); ok {
		return e, true
	}
	e = muster.Event{Fields: make(map[string]any, 8)}
	r := flat.Read(data)
	for r.Next() {
		switch name := r.Name(); string(name) {
		case "event":
			e.Kind = d.word([]byte(r.Text()))
		case "ts":
			e.At = r.Number()
		case "member":
			e.Member = muster.Name(d.word([]byte(r.Text())))
		case "task_id":
			e.Task = muster.TaskID(r.Int())
		default:
			f := d.field(name)
			if f == nil {
				r.Fail()
				break
			}
			e.Fields[f.name] = r.Any()
		}
	}
	return e, !r.Bad()
}

// word is a name as a text that all events share.
func (d *decoder) word(name []byte) string {
	s, ok := d.words[string(name)]
	if !ok {
		s = string(name)
		if d.words == nil {
			d.words = map[string]string{}
		}
		if len(d.words) < maxNames {
			d.words[s] = s
		}
	}
	return s
}

// field is the field of that name; nil where encoding/json could take it for one of ours: "Event" is event too.
func (d *decoder) field(name []byte) *field {
	f := d.fields[string(name)]
	if f == nil && !upper(name) {
		f = &field{name: string(name), head: `"` + string(name) + `":`}
		if d.fields == nil {
			d.fields = map[string]*field{}
		}
		if len(d.fields) < maxNames {
			d.fields[f.name] = f
		}
	}
	return f
}

func upper(name []byte) bool {
	return bytes.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf })
}
