package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// This file makes the schema of a tool's input one that model servers take. They refuse a whole request for one schema
// that is not of draft 2020-12, or for one name of a property. What cannot be repaired is left out of the schema: it
// says less then, and the server still checks the input of a call.

// maxProperty is how long the name of a property may be.
const maxProperty = 64

// offered returns the schema of a tool's input as its bytes stay, and the real names of properties by those that they
// have in it, where these differ. ok is false for a schema that is too large.
func offered(schema any) (_ json.RawMessage, renamed map[string]string, ok bool) {
	top, _ := schema.(map[string]any)
	top = flattened(top, top, 0)
	r := mender{shown: map[string]string{}}
	r.name(propertyNames(top, map[string]bool{}, 0))
	s := r.schema(top, 0)
	for _, key := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"} {
		delete(s, key)
	}
	s["type"] = "object"
	if _, ok := s["properties"].(map[string]any); !ok {
		s["properties"] = map[string]any{}
	}
	s, _ = clean(s, 0).(map[string]any)
	dropDangling(s, s)
	data, err := json.Marshal(s)
	if err != nil || json.Unmarshal(data, &jsonschema.Schema{}) != nil {
		data, err = json.Marshal(bare(s))
	}
	for real, shown := range r.shown {
		if real != shown {
			if renamed == nil {
				renamed = map[string]string{}
			}
			renamed[shown] = real
		}
	}
	return data, renamed, err == nil && len(data) <= maxSchema
}

// bare returns a schema that has the names of the properties of another one alone.
func bare(s map[string]any) map[string]any {
	properties := map[string]any{}
	names, _ := s["properties"].(map[string]any)
	for name := range names {
		properties[name] = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": properties}
}

// flattened returns the schema of an object with the properties of its alternatives, and of what it refers to, as its
// own: model servers take none of these at the top.
func flattened(s, root map[string]any, depth int) map[string]any {
	out := maps.Clone(s)
	if out == nil {
		out = map[string]any{}
	}
	if depth == 8 {
		return out
	}
	properties, _ := out["properties"].(map[string]any)
	properties = maps.Clone(properties)
	add := func(v any, isAll bool) {
		one, _ := v.(map[string]any)
		one = flattened(one, root, depth+1)
		more, _ := one["properties"].(map[string]any)
		for name, schema := range more {
			if properties == nil {
				properties = map[string]any{}
			}
			if own, isThere := properties[name]; isThere && !reflect.DeepEqual(own, schema) && !isAll {
				schema = map[string]any{"anyOf": []any{own, schema}}
			}
			properties[name] = schema
		}
		if required, isList := one["required"].([]any); isAll && isList {
			own, _ := out["required"].([]any)
			out["required"] = slices.Concat(own, required)
		}
	}
	if ref, isRef := s["$ref"].(string); isRef {
		target, _ := lookup(root, ref)
		add(target, true)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for _, v := range list {
			add(v, key == "allOf")
		}
	}
	if properties != nil {
		out["properties"] = properties
	}
	return out
}

// Keywords whose values are schemas: by names, one, and a list.
var (
	schemaMaps = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaOnes = []string{"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemaLists = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
)

// propertyNames collects the names of the properties of a schema, at any depth.
func propertyNames(v any, names map[string]bool, depth int) map[string]bool {
	if list, isList := v.([]any); isList {
		for _, item := range list {
			propertyNames(item, names, depth)
		}
	}
	s, _ := v.(map[string]any)
	if depth > maxDepth {
		return names
	}
	for key, value := range s {
		switch {
		case slices.Contains(schemaMaps, key):
			for name, schema := range byName(value) {
				if key == "properties" {
					names[name] = true
				}
				propertyNames(schema, names, depth+1)
			}
		case slices.Contains(schemaOnes, key), slices.Contains(schemaLists, key):
			propertyNames(value, names, depth+1)
		}
	}
	return names
}

// byName returns schemas by their names. Some servers write a list of schemas with names.
func byName(v any) map[string]any {
	list, _ := v.([]any)
	all, isMap := v.(map[string]any)
	if !isMap {
		all = map[string]any{}
	}
	for _, item := range list {
		one, _ := item.(map[string]any)
		if name, _ := one["name"].(string); name != "" {
			one = maps.Clone(one)
			delete(one, "name")
			all[name] = one
		}
	}
	return all
}

// mender repairs a schema.
type mender struct {
	shown map[string]string // names of properties as models see them
}

// name chooses the names of properties that models see. Only what no model server takes is renamed.
func (r *mender) name(names map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		shown := strings.Map(func(c rune) rune {
			if c == '.' || sanitize(string(c)) == string(c) {
				return c
			}
			return '_'
		}, name)
		if shown != name {
			shown = strings.Trim(shown, "_")
		}
		if shown == "" || len(shown) > maxProperty || shown != name && names[shown] {
			sum := sha256.Sum256([]byte(name))
			shown = fmt.Sprintf("%s_%x", shown[:min(len(shown), maxProperty-9)], sum[:4])
		}
		r.shown[name] = shown
		names[shown] = true
	}
}

// types are the types of a schema by the names that people give them.
var types = map[string]string{"string": "string", "str": "string", "text": "string", "number": "number",
	"float": "number", "double": "number", "decimal": "number", "integer": "integer", "int": "integer",
	"long":    "integer",
	"boolean": "boolean", "bool": "boolean", "object": "object", "dict": "object", "map": "object", "array": "array",
	"list": "array", "null": "null", "none": "null"}

// typesIn returns the types that the value of type names.
func typesIn(v any) (names []any) {
	list, isList := v.([]any)
	if text, isText := v.(string); isText {
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune("|, ", c) }) {
			list = append(list, word)
		}
	} else if !isList {
		return nil
	}
	for _, item := range list {
		text, _ := item.(string)
		if name := types[strings.ToLower(text)]; name != "" && !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	return names
}

// schema returns a schema with what can be kept of it.
func (r *mender) schema(v any, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxDepth {
		return out
	}
	if text, isText := v.(string); isText { // a type in place of a schema, or a description
		v = map[string]any{"description": text}
		if typesIn(text) != nil {
			v = map[string]any{"type": text}
		}
	}
	s, _ := v.(map[string]any)
	for key, value := range s {
		if kept := r.keyword(key, value, depth+1); kept != nil {
			out[key] = kept
		}
	}
	for _, limit := range []string{"Minimum", "Maximum"} { // draft 4 has a boolean beside the limit
		if isExclusive, _ := s["exclusive"+limit].(bool); isExclusive {
			key := strings.ToLower(limit)
			if n, isNumber := out[key].(float64); isNumber {
				out["exclusive"+limit] = n
				delete(out, key)
			}
		}
	}
	if required := r.required(s, out); len(required) > 0 {
		out["required"] = required
	}
	if list, isTuple := out["items"].([]any); isTuple { // before draft 2020-12
		out["items"] = map[string]any{"anyOf": list}
	}
	if _, hasItems := out["items"]; out["type"] == "array" && !hasItems {
		out["items"] = map[string]any{}
	}
	return out
}

// required returns the names of the properties that a schema requires. Draft 3 says it at the property.
func (r *mender) required(s, out map[string]any) (names []any) {
	list, _ := s["required"].([]any)
	if name, isText := s["required"].(string); isText {
		list = []any{name}
	}
	properties := byName(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		one, _ := properties[name].(map[string]any)
		if isRequired, _ := one["required"].(bool); isRequired {
			list = append(list, name)
		}
	}
	known, hasProperties := out["properties"].(map[string]any)
	for _, item := range list {
		name, _ := item.(string)
		shown, isKnown := r.shown[name]
		if _, isHere := known[shown]; isKnown && (isHere || !hasProperties) && !slices.Contains(names, any(shown)) {
			names = append(names, shown)
		}
	}
	return names
}

// keyword returns the value of a keyword with what can be kept of it; nil: nothing.
func (r *mender) keyword(key string, value any, depth int) any {
	switch {
	case slices.Contains(schemaMaps, key):
		all := map[string]any{}
		for name, schema := range byName(value) {
			switch key {
			case "properties", "dependentSchemas":
				shown, isKnown := r.shown[name]
				if !isKnown {
					continue
				}
				name = shown
			case "patternProperties":
				if _, err := regexp.Compile(name); err != nil {
					continue
				}
			}
			all[name] = r.schema(schema, depth)
		}
		return all
	case key == "items" || slices.Contains(schemaLists, key):
		list, isList := value.([]any)
		if one, isMap := value.(map[string]any); isMap && key != "items" {
			list, isList = []any{one}, true
		} else if !isList {
			return r.schema(value, depth)
		}
		all := []any{}
		for _, item := range list {
			all = append(all, r.schema(item, depth))
		}
		if len(all) == 0 {
			return nil
		}
		return all
	case slices.Contains(schemaOnes, key):
		if text, isText := value.(string); isText {
			if isTrue, err := strconv.ParseBool(text); err == nil {
				return isTrue
			}
		}
		switch value := value.(type) {
		case bool:
			return value
		case map[string]any:
			return r.schema(value, depth)
		}
		return nil
	}
	return r.leaf(key, value)
}

// leaf returns the value of a keyword that has no schemas in it.
func (r *mender) leaf(key string, value any) any {
	text, isText := value.(string)
	list, _ := value.([]any)
	switch key {
	case "required", "dependencies", "additionalItems", "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary":
		return nil
	case "id":
		if isText {
			return nil
		}
	case "$ref":
		return r.ref(text)
	case "type":
		if names := typesIn(value); len(names) == 1 {
			return names[0]
		} else if len(names) > 1 {
			return names
		}
		return nil
	case "enum", "examples":
		if len(list) == 0 {
			return nil
		}
	case "pattern":
		if _, err := regexp.Compile(text); err != nil {
			return nil
		}
	case "dependentRequired":
		return nil
	}
	n, isNumber := value.(float64)
	isCount := slices.Contains([]string{"minLength", "maxLength", "minItems", "maxItems", "minProperties",
		"maxProperties", "minContains", "maxContains"}, key)
	if isNumber && isCount && (n < 0 || n != math.Trunc(n)) || isNumber && key == "multipleOf" && n <= 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{key: value})
	if err != nil || json.Unmarshal(data, &jsonschema.Schema{}) != nil {
		return nil
	}
	return value
}

// ref returns a reference with the names of properties that models see; nil for one to another document.
func (r *mender) ref(ref string) any {
	path, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal {
		return nil
	}
	tokens := strings.Split(path, "/")
	for i, token := range tokens {
		if shown := r.shown[unescaped(token)]; shown != "" && i > 0 && tokens[i-1] == "properties" {
			tokens[i] = shown
		}
	}
	return "#" + strings.Join(tokens, "/")
}

// unescaped returns a part of the path of a reference as it is in the document.
func unescaped(token string) string {
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// lookup returns what a reference into a document leads to.
func lookup(root any, ref string) (found any, ok bool) {
	path, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal || path != "" && path[0] != '/' {
		return nil, false
	}
	for _, token := range strings.Split(path, "/")[1:] {
		token = unescaped(token)
		switch v := root.(type) {
		case map[string]any:
			root, ok = v[token]
		case []any:
			var i int
			if _, err := fmt.Sscan(token, &i); err == nil && i >= 0 && i < len(v) {
				root, ok = v[i], true
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return root, true
}

// dropDangling leaves out references that lead nowhere, also in values that are no schemas.
func dropDangling(v, root any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dropDangling(item, root)
		}
	case map[string]any:
		if ref, isRef := v["$ref"].(string); isRef {
			if _, ok := lookup(root, ref); !ok {
				delete(v, "$ref")
			}
		}
		for _, item := range v {
			dropDangling(item, root)
		}
	}
}

// realInput returns the input of a call with the names that properties have at the server.
func (t Tool) realInput(input json.RawMessage) json.RawMessage {
	if len(t.Renamed) == 0 {
		return input
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return input
	}
	data, err := json.Marshal(t.realNames(v))
	if err != nil {
		return input
	}
	return data
}

func (t Tool) realNames(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = t.realNames(v[i])
		}
	case map[string]any:
		real := map[string]any{}
		for name, value := range v {
			if r, ok := t.Renamed[name]; ok {
				name = r
			}
			real[name] = t.realNames(value)
		}
		return real
	}
	return v
}
