package journal

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"muster"
	"muster/internal/flat"
)

// decoder decodes events. It keeps each name that they have in common once. It is used by one goroutine.
type decoder struct {
	words  map[string]string // kinds, members
	fields map[string]*field // without those that encoding/json could take for one of ours
	first  field             // the head of the list of fields in the order of the last line
}

// maxNames is how many names are kept, because the lines of other programs may have any number of them.
const maxNames = 200

// decode returns the event in a line. The error is Corrupt.
func (d *decoder) decode(data []byte) (muster.Event, error) {
	e, ok := d.decodePlain(data)
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

// decodePlain decodes a line as Emit writes it, in one pass. It returns false for a line that needs encoding/json.
func (d *decoder) decodePlain(data []byte) (e muster.Event, ok bool) {
	if !utf8.Valid(data) {
		return e, false
	}
	if e, ok = d.decodeFast(data); ok {
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

// word returns a name as a string that all events share.
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

// field returns the field of that name. It is nil where encoding/json could take the name for one of ours: to it,
// "Event" is event too.
func (d *decoder) field(name []byte) *field {
	f := d.fields[string(name)]
	if f == nil && !hasUpper(name) {
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

func hasUpper(name []byte) bool {
	return bytes.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf })
}
