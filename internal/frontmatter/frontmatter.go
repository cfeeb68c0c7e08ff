// Package frontmatter reads the head of a Markdown file, such as that of a skill, a role or a command: YAML between two
// lines of dashes.
//
// People write such files for several programs, which do not agree on what is allowed in them. So nothing is an error
// here: a head that is not YAML, as with a colon in a sentence, is read line by line. What the fields mean is decided
// by whoever asks for them.
package frontmatter

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"muster/internal/text"
	"muster/internal/yamldoc"
)

// Fields are the fields of a head, by their names in lower case.
type Fields map[string]any

// Split returns the fields and the text below them. A text without a head has no fields.
func Split(text string) (Fields, string) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return Fields{}, text
	}
	var head strings.Builder
	for line := range strings.Lines(rest) {
		rest = rest[len(line):]
		if mark := strings.TrimRight(line, " \t\n"); mark == "---" || mark == "..." {
			return parse(head.String()), strings.TrimLeft(rest, "\n")
		}
		head.WriteString(line)
	}
	return Fields{}, text // the head has no end, so it is none
}

// parse reads a head as YAML, and line by line if it is none.
func parse(head string) Fields {
	// Parse refuses a deep head, for which the library takes very long. It takes as long for aliases of aliases, which
	// stand for far more than they say, and no head needs them.
	node, err := yamldoc.Parse("head", []byte(head))
	if err == nil && node != nil && len(ast.Filter(ast.AliasType, node)) == 0 {
		var read map[string]any
		if yaml.NodeToValue(node, &read) == nil {
			f := Fields{}
			for name, value := range read {
				f[strings.ToLower(name)] = value
			}
			return f
		}
	}
	return parseLines(head)
}

// parseLines reads a head in which each field begins at the beginning of a line. Lines that are indented belong to the
// field above them.
func parseLines(head string) Fields {
	f, last := Fields{}, ""
	for line := range strings.Lines(head) {
		text := strings.TrimSpace(line)
		name, value, isField := strings.Cut(text, ":")
		isIndented := line != strings.TrimLeft(line, " \t") || strings.HasPrefix(text, "- ")
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case isField && !isIndented && !strings.ContainsAny(name, " \t"):
			last = strings.ToLower(name)
			f[last] = strings.Trim(strings.TrimLeft(strings.TrimSpace(value), "|>"), `"' `)
		case last != "":
			f[last] = strings.TrimSpace(fmt.Sprint(f[last]) + " " + strings.TrimPrefix(text, "- "))
		}
	}
	return f
}

// Text returns a field as one line of text, "" if there is none.
func (f Fields) Text(name string) string {
	switch v := f[name].(type) {
	case nil:
		return ""
	case []any, map[string]any:
		return strings.Join(f.List(name), ", ")
	default:
		return text.OneLine(fmt.Sprint(v))
	}
}

// Bool returns a field that is true or false, and without where it is neither.
func (f Fields) Bool(name string, without bool) bool {
	switch strings.ToLower(f.Text(name)) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	return without
}

// List returns a field as a list: its items if it is one, otherwise its text, split at commas and blanks outside of
// parentheses.
func (f Fields) List(name string) (items []string) {
	if list, isList := f[name].([]any); isList {
		for _, item := range list {
			items = append(items, text.OneLine(fmt.Sprint(item)))
		}
		return items
	}
	if _, isMap := f[name].(map[string]any); isMap || f[name] == nil {
		return nil
	}
	depth := 0
	return strings.FieldsFunc(text.OneLine(fmt.Sprint(f[name])), func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(", \t\n[]\"'", r)
	})
}
