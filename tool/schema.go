package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// shape is the schema of a tool's input, as small as a model needs it.
type shape = jsonschema.Schema

// schema is what follows from a tool's input alone. It is never written to: tools share it.
type schema struct {
	shape  *shape
	frozen json.RawMessage // the shape's bytes
}

// enum says that a field takes only these values.
type enum struct {
	field  string
	values []string
}

// made has every schema that was ever asked for, by input: there are as many as there are tools in the program, and each
// of thousands of members has its own tools.
var made sync.Map

// input is what a schema is made of.
type input struct {
	of    reflect.Type
	enums string
}

// schemaOf is the schema of In with these enums.
func schemaOf[In any](name string, enums []enum) *schema {
	key := input{reflect.TypeFor[In](), fmt.Sprintf("%q", enums)}
	if s, ok := made.Load(key); ok {
		return s.(*schema)
	}
	s := shapeOf[In](name)
	for _, e := range enums {
		enumerate(name, s, e.field, e.values)
	}
	now, _ := made.LoadOrStore(key, &schema{s, frozen(name, s)})
	return now.(*schema)
}

// shapeOf makes the shape of In.
func shapeOf[In any](name string) *shape {
	if t := reflect.TypeFor[In](); t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: its input is a %v and must be a struct", name, t))
	}
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	shrink(s)
	return s
}

// shrink leaves out what costs every request of every member some bytes and tells a model nothing: that null is
// accepted too, and that no other fields are (check says so when it matters).
func shrink(s *shape) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	if p := s.AdditionalProperties; p != nil && p.Not != nil {
		s.AdditionalProperties = nil // no others; what stays is a map's
	}
	if s.Minimum != nil && s.Type == "integer" {
		s.Minimum, s.Maximum = nil, nil // the widths of Go's types
	}
	for _, p := range s.Properties {
		shrink(p)
	}
	shrink(s.Items)
	shrink(s.AdditionalProperties)
}

// frozen is the schema's bytes, which never change again: the prefix of every request depends on them.
func frozen(name string, s *shape) json.RawMessage {
	if len(s.Properties) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`) // some providers insist on the second
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	return anything.ReplaceAll(data, []byte(`"$1":{}`))
}

// anything finds the schema true, which stands for any value. Some providers take only objects for schemas. Within a
// string a quote has a backslash before it, so text is never found.
var anything = regexp.MustCompile(`"([A-Za-z_0-9]+)":true`)

func enumerate(name string, s *shape, field string, values []string) {
	for part := range strings.SplitSeq(field, ".") {
		for s.Items != nil {
			s = s.Items
		}
		if s.Properties[part] == nil {
			panic(fmt.Sprintf("tool %s: there is no field %q", name, field))
		}
		s = s.Properties[part]
	}
	for s.Items != nil {
		s = s.Items
	}
	s.Enum = nil
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
}
