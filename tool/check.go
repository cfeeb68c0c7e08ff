package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/internal/editdist"
	"muster/internal/text"
	"muster/llm/repair"
)

// join makes one text of what is wrong with the input of a tool, or "" if nothing is. It says which fields there are.
// The validation of package jsonschema stops at the first error, and its messages are not written for a model.
func join(problems []string, s *shape) string {
	if len(problems) == 0 {
		return ""
	}
	const most = 6 // a model corrects a few at a time, and a long list costs tokens
	if more := len(problems) - most; more > 0 {
		problems = append(problems[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(problems, "; ") + ". " + expected(s)
}

// typeOf returns the type of JSON schema that v has, as package json decodes it. An integer is a number, too.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// withArticle puts the indefinite article before a type's name.
func withArticle(typ string) string {
	if strings.ContainsRune("aeiou", rune(typ[0])) {
		return "an " + typ
	}
	return "a " + typ
}

// describe says what v is, and shows it if it is short.
func describe(v any) string {
	switch t := typeOf(v); t {
	case "null":
		return t
	case "string":
		return "the string " + shorten(fmt.Sprintf("%q", v))
	case "array", "object":
		return withArticle(t)
	}
	return shorten(fmt.Sprint(v)) // a number or a boolean
}

// shorten cuts what is shown of a value.
func shorten(s string) string { return text.CutBytes(s, 60) }

// list joins values with commas.
func list(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

// expected lists the fields of s with their types.
func expected(s *shape) string {
	if len(s.PropertyOrder) == 0 {
		return "It takes no fields."
	}
	var out []string
	for _, field := range visible(s) {
		p := s.Properties[field]
		text := cmp.Or(p.Type, "any")
		if p.Items != nil && p.Items.Type != "" {
			text += " of " + p.Items.Type
			if fields := visible(p.Items); len(fields) > 0 {
				text += "s with " + strings.Join(fields, ", ")
			}
		}
		if len(p.Enum) > 0 {
			text += ": " + list(p.Enum)
		}
		if !slices.Contains(s.Required, field) {
			text += ", optional"
		}
		out = append(out, field+" ("+text+")")
	}
	return "Fields: " + strings.Join(out, ", ") + "."
}

// guess returns the field that was meant by a name that no field has: one with a similar name, or the only missing one.
func guess(given string, missing, all []string) string {
	for _, field := range all {
		if isMisspelt(given, field) {
			return field
		}
	}
	if len(missing) == 1 {
		return missing[0]
	}
	return ""
}

// isMisspelt reports whether name is the field but for a letter or two.
func isMisspelt(name, field string) bool {
	return editdist.Distance(repair.Fold(name), repair.Fold(field)) <= min(2, len(field)/3)
}
