package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/llm"
	"muster/llm/repair"
)

// fit returns input in the form that s asks for, or, in the model's words, what is wrong with it and what it needs to
// know to correct that. What models get wrong without doubt about what they mean is put right: fields under another
// name, numbers and booleans as strings, lists and objects encoded as strings, one value where a list is asked, null
// where a field may be missing, and fields that the tool does not have. An input that fits is returned as it is.
//
// spec is the tool's. If it changes something, an unknown field may not be ignored where it would restrict that.
func fit(s *shape, spec llm.Spec, input json.RawMessage) (json.RawMessage, string) {
	data, err := repair.Value(input)
	v, _ := decodeValue(data)
	if err != nil {
		return nil, fmt.Sprintf("the input is not valid JSON: %v. %s", err, expected(s))
	}
	f := fitter{tool: spec.Name, restricts: !spec.ReadOnly}
	v = f.value(s, f.unwrap(s, v), "")
	if complaint := join(f.problems, s); complaint != "" {
		return nil, complaint
	}
	if !f.changed {
		return input, ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Sprintf("the input does not fit: %v. %s", err, expected(s))
	}
	return b.Bytes(), ""
}

// Fit returns the input of a call as t reads it, with what a model got slightly wrong put right. An input that t
// refuses, and that of a tool which New has not made, is returned as it is. It is for wrappers that look at what a call
// does.
func Fit(t llm.Tool, input json.RawMessage) json.RawMessage {
	if f, ok := t.(interface {
		fitted(input json.RawMessage) json.RawMessage
	}); ok {
		return f.fitted(input)
	}
	return input
}

// decodeValue decodes JSON. Numbers stay as they are spelt, so that 1.5 for an integer is told from 1.
func decodeValue(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return v, d.Decode(&v)
}

// fitter makes a value fit. It notes what it cannot.
type fitter struct {
	tool      string
	restricts bool
	changed   bool
	problems  []string
}

// problem notes what is wrong.
func (f *fitter) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// wrappers are the names under which some models nest all fields once more.
var wrappers = []string{"arguments", "args", "parameters", "params", "kwargs", "toolinput", "properties", "input"}

// unwrap returns an object with the fields that are in it under a name that is no field, and those beside it. Some
// models also give the tool's name there.
func (f *fitter) unwrap(s *shape, v any) any {
	o, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		fields := f.wrapped(s, o, name)
		if fields == nil {
			continue
		}
		delete(o, name)
		if o["name"] == f.tool {
			delete(o, "name")
		}
		for _, beside := range slices.Sorted(maps.Keys(o)) {
			if _, isTwice := fields[beside]; isTwice {
				f.problem("%q is there twice", beside)
			}
			fields[beside] = o[beside]
		}
		f.changed = true
		return f.unwrap(s, fields)
	}
	return v
}

// wrapped returns the fields that o has under a name, or nil if they are not wrapped there. A text is the only field
// that the tool asks for. An input beside other fields may be meant for the program that the tool runs.
func (f *fitter) wrapped(s *shape, o map[string]any, name string) map[string]any {
	isInput := repair.Fold(name) == "input"
	if s.AdditionalProperties != nil || !slices.Contains(wrappers, repair.Fold(name)) || fieldFor(s, name, o) != "" ||
		isInput && len(o) > 1 {
		return nil
	}
	inner := decoded(o[name])
	if _, isText := inner.(string); isText && !isEncoded(inner) && len(s.Required) == 1 && len(o) == 1 && !isInput {
		return map[string]any{s.Required[0]: inner}
	}
	fields, _ := inner.(map[string]any)
	return fields
}

// isEncoded reports whether a value is a text that begins as the JSON of a list or an object does.
func isEncoded(v any) bool {
	text, _ := v.(string)
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")
}

// decoded returns the list or the object that a text is the JSON of, and any other value as it is.
func decoded(v any) any {
	if !isEncoded(v) {
		return v
	}
	data, err := repair.Value([]byte(strings.TrimSpace(v.(string))))
	if err != nil {
		return v
	}
	if inner, err := decodeValue(data); err == nil {
		return inner
	}
	return v
}

// value returns v, which is the value at path, in the form that s asks for. A schema without a type takes any value.
func (f *fitter) value(s *shape, v any, path string) any {
	if s == nil || s.Type == "" && len(s.Types) == 0 {
		return v
	}
	name := "the input"
	if path != "" {
		name = fmt.Sprintf("%q", path)
	}
	if !hasType(v, s.Type) {
		converted, ok := convert(s, v)
		if !ok {
			f.problem("%s must be %s, got %s", name, withArticle(s.Type), describe(v))
			return v
		}
		v, f.changed = converted, true
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		meant := oneOf(s.Enum, v)
		if meant == nil {
			f.problem("%s must be one of %s, got %s", name, list(s.Enum), describe(v))
			return v
		}
		v, f.changed = meant, true
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			v[i] = f.value(s.Items, e, fmt.Sprintf("%s[%d]", path, i))
		}
	case map[string]any:
		f.object(s, v, path)
	}
	return v
}

// hasType reports whether v has a type of JSON schema. "" is any.
func hasType(v any, want string) bool {
	t := typeOf(v)
	return want == "" || t == want || t == "integer" && want == "number"
}

// convert returns v as a value of the type of s, if it can mean only one.
func convert(s *shape, v any) (_ any, ok bool) {
	text, isText := v.(string)
	switch s.Type {
	case "integer", "number":
		return toNumber(v, s.Type)
	case "boolean":
		return toBoolean(v)
	case "string":
		return toText(v)
	case "array":
		if isText && strings.TrimSpace(text) == "" {
			return []any{}, true
		}
		v = decoded(v)
		if list, isList := v.([]any); isList {
			return list, true
		}
		return []any{v}, v != nil
	case "object":
		fields, isObject := decoded(v).(map[string]any)
		return fields, isObject
	}
	return nil, false
}

// toNumber returns a number, or a text of one, as one of this type. 5.0 is an integer, and 5.5 is none. Tasks are
// written as #5.
func toNumber(v any, typ string) (any, bool) {
	if text, isText := v.(string); isText {
		text = strings.TrimSpace(text)
		if typ == "integer" {
			text = strings.TrimPrefix(text, "#")
		}
		if text == "" || strings.Trim(text, "+-.0123456789eE") != "" || !json.Valid([]byte(text)) {
			return nil, false
		}
		v = json.Number(text)
	}
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	if _, err := n.Int64(); err == nil || typ == "number" {
		return n, true
	}
	x, err := n.Float64()
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(x), 10)), true
}

// toBoolean returns what a word or 0 and 1 say.
func toBoolean(v any) (any, bool) {
	switch strings.ToLower(strings.TrimSpace(fmt.Sprint(v))) {
	case "true", "yes", "1", "on":
		return true, true
	case "false", "no", "0", "off", "":
		return false, true
	}
	return nil, false
}

// toText returns a number or a boolean as it is written, the only text of a list, and the command of a list that calls
// a shell, or apply_patch with a patch. Other lists are ambiguous.
func toText(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number, bool:
		return fmt.Sprint(v), true
	case []any:
		if len(v) == 3 && slices.Contains([]any{"bash", "sh", "/bin/bash", "/bin/sh"}, v[0]) &&
			slices.Contains([]any{"-c", "-lc"}, v[1]) {
			v = v[2:]
		}
		if len(v) == 2 && slices.Contains([]any{"apply_patch", "applypatch"}, v[0]) {
			patch, ok := v[1].(string)
			return fmt.Sprintf("apply_patch <<'EOF'\n%s\nEOF", strings.TrimSuffix(patch, "\n")), ok
		}
		if len(v) == 1 {
			text, ok := v[0].(string)
			return text, ok
		}
	}
	return nil, false
}

// argv returns the words of a command that is a list of them, as Codex's are, for a shell; "" for any other value. It
// also returns "" where a text without an option beside it is no single word, or has an operator of the shell: each may
// be a command of its own.
func argv(v any) string {
	list, _ := v.([]any)
	separators := " \t\r\n;&|<>()`"
	isOption := func(e any) bool { s, _ := e.(string); return strings.HasPrefix(s, "-") }
	if len(list) > 1 && slices.ContainsFunc(list[1:], isOption) {
		separators = ""
	}
	var words []string
	for _, e := range list {
		word, ok := e.(string)
		if !ok || strings.ContainsAny(word, separators) ||
			len(words) == 0 && (word == "" || strings.ContainsAny(word, "$'\"\\ \t\n;&|<>()`")) {
			return ""
		}
		words = append(words, text.ShellQuote(word))
	}
	if _, isScript := toText(v); isScript {
		return ""
	}
	return strings.Join(words, " ")
}

// oneOf returns the only one of values that differs from v in case and separators, or nil.
func oneOf(values []any, v any) (found any) {
	for _, value := range values {
		a, isText := value.(string)
		if b, ok := v.(string); ok && isText && repair.Fold(a) == repair.Fold(b) {
			if found != nil {
				return nil
			}
			found = value
		}
	}
	return found
}

// object makes an object fit: its fields get their names and forms, and those that the tool does not have are dropped.
func (f *fitter) object(s *shape, v map[string]any, path string) {
	at := func(field string) string { return strings.TrimPrefix(path+"."+field, ".") }
	names := slices.Sorted(maps.Keys(v)) // sorted, so that the same input always gets the same answer
	if s.AdditionalProperties != nil {   // a map: any name is right
		for _, name := range names {
			v[name] = f.value(s.AdditionalProperties, v[name], at(name))
		}
		return
	}
	var unknown []string
	for _, name := range names {
		if s.Properties[name] != nil {
			continue
		}
		f.changed = true
		given := v[name]
		delete(v, name)
		name, given := converted(s, name, given)
		switch field := fieldFor(s, name, v); {
		case field == "" && (!isNothing(given) || repair.Fold(name) == "overwrite"):
			unknown = append(unknown, name)
			v[name] = given // until it is known what is missing
		case field == "" || given == nil:
		case v[field] == nil:
			v[field] = given
		case !reflect.DeepEqual(v[field], given):
			f.problem("%q and %q are the same field and differ", at(field), at(name))
		}
	}
	// missing is kept apart, because an unknown field most often is a missing one under another name.
	missing := f.fields(s, v, at)
	for _, name := range unknown {
		given := v[name]
		delete(v, name)
		f.unknown(s, at(name), name, given, missing)
	}
}

// fields makes the fields of an object fit that the tool has, and returns those that are missing. null counts as
// missing, and so does an empty text where something else is asked.
func (f *fitter) fields(s *shape, v map[string]any, at func(string) string) (missing []string) {
	for _, field := range s.PropertyOrder {
		given, is := v[field]
		if words := argv(given); field == "command" && words != "" {
			given, f.changed = words, true
		}
		required := slices.Contains(s.Required, field)
		if p := s.Properties[field]; given != nil && !required && p.Type != "string" && isWordForNull(given) {
			given = nil
		}
		switch {
		case given != nil:
			v[field] = f.value(s.Properties[field], given, at(field))
		case required:
			missing = append(missing, field)
			f.problem("%q is missing", at(field))
		case is:
			delete(v, field)
			f.changed = true
		}
	}
	return missing
}

// isWordForNull reports whether v is a text that stands for nothing where no text is asked.
func isWordForNull(v any) bool {
	text, ok := v.(string)
	return ok && slices.Contains([]string{"", "null", "none", "undefined"}, strings.ToLower(strings.TrimSpace(text)))
}

// unknown decides about a field that the tool does not have. It is ignored, unless that could do something else than
// the model has asked for, or leave it with a field that is missing.
func (f *fitter) unknown(s *shape, at, name string, given any, missing []string) {
	isMeant := func(field string) bool { return isMisspelt(name, field) }
	problem := "there is no field " + shorten(fmt.Sprintf("%q", at))
	if len(missing) == 0 && !slices.ContainsFunc(s.PropertyOrder, isMeant) {
		isRestricting := slices.Contains(restricting, repair.Fold(name)) || given == false // such as overwrite
		if !f.restricts || !isRestricting {
			return
		}
	} else if meant := guess(name, missing, s.PropertyOrder); meant != "" {
		problem += fmt.Sprintf(" (did you mean %q?)", meant)
	}
	f.problem("%s", problem)
}

// meantName matches a text that is meant as a name. A longer one is none, and what is left of it would be another's.
var meantName = lazyregexp.New(`^[A-Za-z0-9 _-]{1,64}$`)

// fitNames turns texts into names where a muster.Name is asked: models write "Frontend Developer" for
// frontend-developer. in is a pointer to a struct.
func fitNames(in any) {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		name, ok := field.Interface().(muster.Name)
		if ok && muster.CheckName(name) != nil && meantName().MatchString(string(name)) {
			lower := strings.ToLower(string(name)) // Lead is no name that is free, and may be meant
			field.SetString(string(muster.Slug(lower, muster.Name(lower))))
		}
	}
}
