package muster

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Extra holds the fields of a document that its struct does not know. They survive a rewrite.
type Extra map[string]json.RawMessage

// TrimBOM is a text without the byte order mark that editors on Windows write before it.
func TrimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// Encode writes a document as the state files have it: indented by two, no HTML escapes, a newline at its end.
func Encode(v any) ([]byte, error) { return encode(v, "  ") }

// MarshalLine writes a record as a log has it: one line without its newline, no HTML escapes.
func MarshalLine(v any) ([]byte, error) {
	line, err := encode(v, "")
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// encode writes v with an indentation and a newline at its end. HTML is not escaped, because people read the files.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
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

// unmarshalKeep decodes a document into v, and the fields that the struct does not know into extra, which may be a
// field of v. read has the values of fields that the document does not have. After an error v is as it was.
func unmarshalKeep[T any](data []byte, v *T, extra *Extra, read T) error {
	// Most documents have no other fields, and one decoding is enough for them.
	known, strict := read, json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(&known) == nil && len(bytes.TrimSpace(data[strict.InputOffset():])) == 0 {
		*v = known
		return nil
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	var all Extra
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(all, name)
	}
	if *v = read; len(all) > 0 {
		*extra = all
	}
	return nil
}

// take moves a field out of x into the value that v points to, if it is there and not null.
func (x Extra) take(name string, v any) error {
	raw, ok := x[name]
	delete(x, name)
	if !ok || string(raw) == "null" {
		return nil
	}
	return json.Unmarshal(raw, v)
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
