package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/internal/editdist"
)

// check compares input with s and returns what a model must know to mend it, or nothing.
func check(s *shape, input json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Sprintf("the input is not valid JSON: %v. %s", err, expected(s))
	}
	var wrong []string
	compare(s, v, "", &wrong)
	if len(wrong) == 0 {
		return ""
	}
	const most = 6
	if more := len(wrong) - most; more > 0 {
		wrong = append(wrong[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(wrong, "; ") + ". " + expected(s)
}

// compare adds to wrong what is wrong with v at path.
func compare(s *shape, v any, path string, wrong *[]string) {
	complain := func(f string, a ...any) { *wrong = append(*wrong, fmt.Sprintf(f, a...)) }
	name := "the input"
	if path != "" {
		name = fmt.Sprintf("%q", path)
	}
	if s == nil || s.Type == "" && len(s.Types) == 0 {
		return // anything goes
	}
	if s.Type != "" && !fits(s.Type, v) {
		complain("%s must be %s, got %s", name, article(s.Type), describe(v))
		return
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		complain("%s must be one of %s, got %s", name, options(s.Enum), describe(v))
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			compare(s.Items, e, fmt.Sprintf("%s[%d]", path, i), wrong)
		}
	case map[string]any:
		compareObject(s, v, path, wrong)
	}
}

func compareObject(s *shape, v map[string]any, path string, wrong *[]string) {
	at := func(field string) string {
		if path == "" {
			return field
		}
		return path + "." + field
	}
	if s.AdditionalProperties != nil { // a map
		for _, k := range sorted(v) {
			compare(s.AdditionalProperties, v[k], at(k), wrong)
		}
		return
	}
	var missing []string
	for _, field := range s.PropertyOrder {
		val, given := v[field]
		switch {
		case given && val != nil:
			compare(s.Properties[field], val, at(field), wrong)
		case slices.Contains(s.Required, field): // null is the same as nothing
			missing = append(missing, field)
			*wrong = append(*wrong, fmt.Sprintf("%q is missing", at(field)))
		}
	}
	for _, k := range sorted(v) {
		if s.Properties[k] != nil {
			continue
		}
		text := fmt.Sprintf("there is no field %q", at(k))
		if near := nearest(k, missing, s.PropertyOrder); near != "" {
			text += fmt.Sprintf(" (did you mean %q?)", near)
		}
		*wrong = append(*wrong, text)
	}
}

func sorted(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func fits(typ string, v any) bool {
	switch v := v.(type) {
	case string:
		return typ == "string"
	case bool:
		return typ == "boolean"
	case json.Number:
		_, err := v.Int64()
		return typ == "number" || typ == "integer" && err == nil
	case []any:
		return typ == "array"
	case map[string]any:
		return typ == "object"
	}
	return false
}

func article(typ string) string {
	switch typ {
	case "integer", "array", "object":
		return "an " + typ
	}
	return "a " + typ
}

// describe says what v is, and shows it if it is short.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "the string " + clip(fmt.Sprintf("%q", v))
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return clip(v.String())
	case []any:
		return "an array"
	}
	return "an object"
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

func options(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

// expected lists the fields of s.
func expected(s *shape) string {
	if len(s.PropertyOrder) == 0 {
		return "It takes no fields."
	}
	var out []string
	for _, field := range s.PropertyOrder {
		p := s.Properties[field]
		text := field + " (" + p.Type
		if p.Type == "" {
			text = field + " (any"
		}
		if p.Items != nil && p.Items.Type != "" {
			text += " of " + p.Items.Type
			if len(p.Items.PropertyOrder) > 0 {
				text += "s with " + strings.Join(p.Items.PropertyOrder, ", ")
			}
		}
		if len(p.Enum) > 0 {
			text += ": " + options(p.Enum)
		}
		if !slices.Contains(s.Required, field) {
			text += ", optional"
		}
		out = append(out, text+")")
	}
	return "Fields: " + strings.Join(out, ", ") + "."
}

// nearest guesses which field was meant: the only missing one, or one that is written nearly so.
func nearest(given string, missing, all []string) string {
	for _, field := range all {
		if abbreviates(given, field) || abbreviates(field, given) || editdist.Distance(given, field) <= min(2, len(field)/3) {
			return field
		}
	}
	if len(missing) == 1 {
		return missing[0]
	}
	return ""
}

// abbreviates tells whether short is made of letters of long in their order, beginning with the first ("cmd", "command").
func abbreviates(short, long string) bool {
	if len(short) < 2 || len(short) > len(long) || short[0] != long[0] {
		return false
	}
	i := 0
	for j := 0; j < len(long) && i < len(short); j++ {
		if short[i] == long[j] {
			i++
		}
	}
	return i == len(short)
}
