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
	fields map[string]string // without what for encoding/json could be another name for ours
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
			e.Kind = once(&d.words, r.Text())
		case "ts":
			e.At = r.Number()
		case "member":
			e.Member = muster.Name(once(&d.words, r.Text()))
		case "task_id":
			e.Task = muster.TaskID(r.Int())
		default:
			field, ok := d.fields[string(name)]
			if !ok {
				if upper(name) { // for encoding/json "Event" is event too
					r.Fail()
					break
				}
				field = once(&d.fields, string(name))
			}
			e.Fields[field] = r.Any()
		}
	}
	return e, !r.Bad()
}

// once is name as a text that all events share.
func once(names *map[string]string, name string) string {
	s, ok := (*names)[name]
	if !ok {
		s = name
		if *names == nil {
			*names = map[string]string{}
		}
		if len(*names) < maxNames {
			(*names)[s] = s
		}
	}
	return s
}

func upper(name []byte) bool {
	return bytes.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf })
}
