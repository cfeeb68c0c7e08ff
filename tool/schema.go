package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// shape is the schema of a tool's input, as small as a model needs it.
type shape = jsonschema.Schema

// schema is a shape with its encoding. Tools share it, so it is never written to.
type schema struct {
	shape  *shape
	frozen json.RawMessage
}

// enum says that a field takes only these values.
type enum struct {
	field  string
	values []string
}

// schemas caches every schema by the type of the input and its enums. There are as many as there are tools in
// the program, but each of thousands of members makes its own tools, and making a schema is slow.
var schemas sync.Map

// schemaOf returns the schema of In with these enums. name is the tool's, for panics. It panics if In is not a
// struct with a schema: that is a mistake in the program.
func schemaOf[In any](name string, enums []enum) *schema {
	t := reflect.TypeFor[In]()
	key := [2]any{t, fmt.Sprintf("%q", enums)}
	if s, ok := schemas.Load(key); ok {
		return s.(*schema)
	}
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: its input is a %v and must be a struct", name, t))
	}
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	shrink(s)
	for _, e := range enums {
		setEnum(name, s, e)
	}
	stored, _ := schemas.LoadOrStore(key, &schema{s, encode(name, withoutHidden(s))})
	return stored.(*schema)
}

// shrink removes what a model does not need, because every request of every member carries it: that null is
// accepted too, that no other fields are (check says so when it matters), and the ranges of Go's integer
// types.
func shrink(s *shape) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	if p := s.AdditionalProperties; p != nil && p.Not != nil {
		s.AdditionalProperties = nil // it is "no others"; the schema of a map's values stays
	}
	if s.Minimum != nil && s.Type == "integer" {
		s.Minimum, s.Maximum = nil, nil
	}
	for _, p := range s.Properties {
		shrink(p)
	}
	shrink(s.Items)
	shrink(s.AdditionalProperties)
}

// visible returns the fields of s that models are told of. A field with the description "-" is hidden: a tool accepts
// it, because models give it unasked.
func visible(s *shape) []string {
	return slices.DeleteFunc(slices.Clone(s.PropertyOrder), func(field string) bool {
		return s.Properties[field].Description == "-"
	})
}

// withoutHidden returns a copy of s without hidden fields.
func withoutHidden(s *shape) *shape {
	if s == nil {
		return nil
	}
	c := *s
	c.Items, c.AdditionalProperties = withoutHidden(s.Items), withoutHidden(s.AdditionalProperties)
	c.PropertyOrder, c.Properties = visible(s), maps.Clone(s.Properties)
	for field, p := range s.Properties {
		c.Properties[field] = withoutHidden(p)
		if !slices.Contains(c.PropertyOrder, field) {
			delete(c.Properties, field)
		}
	}
	return &c
}

// encode returns the bytes of the schema. They are made once, because providers cache requests by their
// first bytes, which hold the schemas.
func encode(name string, s *shape) json.RawMessage {
	if len(s.Properties) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`) // some providers insist on the second
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	return trueSchema.ReplaceAll(data, []byte(`"$1":{}`))
}

// trueSchema finds the schema true, which accepts any value. Some providers accept only objects as schemas,
// so it is replaced by {}. It never matches within a string, where each quote has a backslash before it.
var trueSchema = regexp.MustCompile(`"([A-Za-z_0-9]+)":true`)

// setEnum restricts the field of an enum to its values. It panics if there is no such field.
func setEnum(name string, s *shape, e enum) {
	for part := range strings.SplitSeq(e.field, ".") {
		s = elementOf(s).Properties[part]
		if s == nil {
			panic(fmt.Sprintf("tool %s: there is no field %q", name, e.field))
		}
	}
	s = elementOf(s)
	for _, v := range e.values {
		s.Enum = append(s.Enum, v)
	}
}

// elementOf returns the schema of the elements if s is a list, of any depth, and else s.
func elementOf(s *shape) *shape {
	for s.Items != nil {
		s = s.Items
	}
	return s
}
