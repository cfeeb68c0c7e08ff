package journal

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"muster"
	"muster/internal/flat"
)

// decoder reads events. The names that they have in common it keeps once.
type decoder struct{ names map[string]string }

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

// plain reads a line as we write it, in one pass. False: it is to be read the slow way.
func (d *decoder) plain(data []byte) (e muster.Event, ok bool) {
	if !utf8.Valid(data) {
		return e, false
	}
	e.Fields = make(map[string]any, 8)
	r := flat.Read(data)
	for r.Next() {
		switch name := r.Name(); string(name) {
		case "event":
			e.Kind = d.once([]byte(r.Text()))
		case "ts":
			e.At = r.Number()
		case "member":
			e.Member = muster.Name(d.once([]byte(r.Text())))
		case "task_id":
			e.Task = muster.TaskID(r.Int())
		default:
			if upper(name) { // for encoding/json "Event" is event too
				r.Fail()
			}
			e.Fields[d.once(name)] = r.Any()
		}
	}
	return e, !r.Bad()
}

// once is name as a text that all events share.
func (d *decoder) once(name []byte) string {
	s, ok := d.names[string(name)]
	if !ok {
		s = string(name)
		if d.names == nil {
			d.names = map[string]string{}
		}
		if len(d.names) < maxNames {
			d.names[s] = s
		}
	}
	return s
}

func upper(name []byte) bool {
	return bytes.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf })
}
