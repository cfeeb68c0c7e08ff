package muster

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Extra holds the fields of a document that its struct does not know. They survive a rewrite.
type Extra map[string]json.RawMessage

// TrimBOM is a text without the byte order mark that editors on Windows write before it.
func TrimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// Encode writes a document as the state files have it: indented by two, no HTML escapes, a newline at its end.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// MarshalLine writes a record as a log has it: one line without its newline, no HTML escapes.
func MarshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnixTime is t as the state files have it: Unix seconds.
func UnixTime(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}

// Time is the time of a stamp.
func Time(stamp float64) time.Time {
	if stamp == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(stamp * 1e6))
}

// unmarshalKeep decodes data into the struct v points to and returns the fields that it does not know.
func unmarshalKeep(data []byte, v any) (Extra, error) {
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	known := namesOf(reflect.TypeOf(v).Elem())
	if !foreign(data, known) {
		return nil, nil // most documents: decoding them into a map costs more than all the rest
	}
	var all Extra
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for name := range known {
		delete(all, name)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// names has the names of the fields of each kind of document: reflection is too slow to be asked for every task.
var names sync.Map // reflect.Type -> map[string]bool

func namesOf(t reflect.Type) map[string]bool {
	if known, ok := names.Load(t); ok {
		return known.(map[string]bool)
	}
	known := map[string]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = true
	}
	names.Store(t, known)
	return known
}

// foreign reports whether data, which is valid JSON, may have a field that is none of known. It is true for every name
// with an escape in it.
func foreign(data []byte, known map[string]bool) bool {
	depth, name := 0, false // name: a string here is the name of a field
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
			name = true
		case '}', ']':
			depth--
		case ',':
			name = true
		case ':':
			name = false
		case '"':
			start := i + 1
			for i = start; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if name && depth == 1 && !known[string(data[start:i])] {
				return true
			}
		}
	}
	return false
}

// take moves the first of the named fields out of x into the value that v points to, if it is there and not null.
func (x Extra) take(v any, names ...string) error {
	for _, n := range names {
		raw, ok := x[n]
		if !ok {
			continue
		}
		delete(x, n)
		if string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, v); err != nil {
			return err
		}
	}
	return nil
}

// marshalKeep encodes the struct v and appends the kept fields.
func marshalKeep(v any, extra Extra) ([]byte, error) {
	out, err := MarshalLine(v)
	if err != nil || len(extra) == 0 {
		return out, err
	}
	rest, err := MarshalLine(map[string]json.RawMessage(extra))
	if err != nil {
		return nil, err
	}
	// {"a":1} and {"x":2} become {"a":1,"x":2}
	return append(append(out[:len(out)-1], ','), rest[1:]...), nil
}
