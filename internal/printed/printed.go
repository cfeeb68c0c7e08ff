// Package printed encodes what --json prints.
//
// The files of a team have the names and the numbers of the formats that other programs read and write: dependsOn, and
// times in Unix seconds. What is printed has one form everywhere: snake_case names, and times as RFC 3339 text in UTC.
// The one exception is blockedBy, a name that other programs read. Nothing else is changed, and fields that muster does
// not know are printed as they are.
//
// The package does not decide what a command prints, and it writes no files.
package printed

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"muster"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// timeLayout is RFC 3339 with the microseconds that records have. All times have the same length, so their text sorts
// in the order of time.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// form is how the document of a record becomes what is printed.
type form struct {
	// times are the fields with Unix seconds; 0 is printed as null.
	times []string
	// names are new names of fields.
	names map[string]string
	// inner are the forms of the objects in fields that hold arrays of them.
	inner map[string]form
}

// options are those of encoding/json, with the forms of the records that have times in Unix seconds. Whatever else is
// printed has its printed form by itself.
var options = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false),
	json.WithMarshalers(json.JoinMarshalers(
		record[muster.Task](form{times: []string{"claimed_at", "created_at", "updated_at"},
			names: map[string]string{"dependsOn": "depends_on"}}),
		record[muster.Member](memberForm),
		record[view.Member](memberForm),
		record[muster.Message](form{times: []string{"timestamp"}}),
		record[muster.Request](form{
			times: []string{"created_at", "updated_at", "deadline", "resolved_at", "taken_at"}}),
		record[muster.Lane](form{times: []string{"created_at"}}),
		record[muster.Event](form{times: []string{"ts", "until"}}),
		record[muster.Run](form{times: []string{"started_at", "ended_at"},
			names: map[string]string{"away": "away_seconds"},
			inner: map[string]form{"checks": {names: map[string]string{"timeout": "timeout_seconds"}}}}),
		record[view.QueuedLanding](form{times: []string{"since"}}),
		record[view.Shortening](form{times: []string{"at"}}),
		record[workspace.ArchivedTeam](form{times: []string{"archived_at"}}),
		record[trust.Grant](form{times: []string{"at"}}),
		record[team.Cleanable](form{times: []string{"at"}}),
		record[team.Comment](form{times: []string{"at"}}),
		json.MarshalToFunc(writeTime))))

var memberForm = form{times: []string{"joined_at", "since"}}

// record returns the encoder of a type whose values are encoded as f says.
func record[T any](f form) *json.Marshalers {
	return json.MarshalToFunc(func(e *jsontext.Encoder, v T) error {
		data, err := muster.MarshalLine(v)
		if err != nil {
			return err
		}
		// Fields that muster does not know are printed as they are, odd ones too.
		return f.object(e, jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true),
			jsontext.AllowInvalidUTF8(true)))
	})
}

// object copies an object from d to e.
func (f form) object(e *jsontext.Encoder, d *jsontext.Decoder) error {
	if err := copyToken(e, d); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := f.field(e, d, token.String()); err != nil {
			return err
		}
	}
	return copyToken(e, d)
}

// field copies the value of a field from d to e, with its name.
func (f form) field(e *jsontext.Encoder, d *jsontext.Decoder, name string) error {
	printed, isRenamed := f.names[name]
	if !isRenamed {
		printed = name
	}
	for _, renamed := range f.names {
		if name == renamed { // another program's, which has no place beside the renamed one
			return d.SkipValue()
		}
	}
	if err := e.WriteToken(jsontext.String(printed)); err != nil {
		return err
	}
	inner, hasInner := f.inner[name]
	switch kind := d.PeekKind(); {
	case kind == jsontext.KindNumber && slices.Contains(f.times, name):
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		stamp, err := token.Float()
		if err != nil {
			return err
		}
		return writeTime(e, muster.Time(stamp))
	case kind == jsontext.KindBeginArray && hasInner:
		return inner.array(e, d)
	}
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	return e.WriteValue(value)
}

// writeTime writes a time; the zero time is null.
func writeTime(e *jsontext.Encoder, t time.Time) error {
	if t.IsZero() {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(t.UTC().Format(timeLayout)))
}

// array copies an array of objects from d to e.
func (f form) array(e *jsontext.Encoder, d *jsontext.Decoder) error {
	if err := copyToken(e, d); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if err := f.object(e, d); err != nil {
			return err
		}
	}
	return copyToken(e, d)
}

func copyToken(e *jsontext.Encoder, d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	return e.WriteToken(token)
}

// Document encodes v indented by two, with a newline at its end.
func Document(v any) ([]byte, error) {
	data, err := json.Marshal(v, options, jsontext.WithIndent("  "))
	return append(data, '\n'), err
}

// Line encodes v in one line, without a newline.
func Line(v any) ([]byte, error) { return json.Marshal(v, options) }
