package instructions

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"muster/internal/text"
)

// Rule are instructions that hold for some paths only.
type Rule struct {
	File string // as people read it
	Text string // as a model reads it

	dir      string // that the patterns are relative to, itself relative to the root
	patterns []string
}

// Covers reports whether a rule holds for a path, relative to the root and with slashes.
func (r Rule) Covers(name string) (covers bool) {
	if r.dir != "" {
		rel, isBelow := strings.CutPrefix(name, r.dir+"/")
		if !isBelow {
			return false
		}
		name = rel
	}
	for _, pattern := range r.patterns {
		pattern, isNot := strings.CutPrefix(pattern, "!")
		if !strings.Contains(pattern, "/") { // in any directory
			pattern = "**/" + pattern
		}
		pattern = strings.TrimPrefix(pattern, "/")
		if doublestar.MatchUnvalidated(pattern, name) || doublestar.MatchUnvalidated(pattern+"/**", name) {
			covers = !isNot
		}
	}
	return covers
}

// patternsOf returns the patterns of the field paths, which may be a list, or a text with commas or blanks. It is nil
// for a rule that holds everywhere. bad are those that are no patterns.
func patternsOf(field any) (patterns, bad []string) {
	var all []string
	switch field := field.(type) {
	case nil:
	case []any:
		for _, item := range field {
			all = append(all, splitPatterns(fmt.Sprint(item))...)
		}
	case string:
		if strings.HasPrefix(field, "[") && strings.HasSuffix(field, "]") { // YAML refuses a * without quotation marks
			field = field[1 : len(field)-1]
		}
		all = splitPatterns(field)
	default:
		return nil, []string{text.CutBytes(text.OneLine(fmt.Sprint(field)), 100)}
	}
	for _, pattern := range all {
		not := ""
		if strings.HasPrefix(pattern, "!") {
			not, pattern = "!", pattern[1:]
		}
		isAnchored := strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "./")
		pattern = strings.TrimPrefix(path.Clean("/"+pattern), "/")
		switch {
		case pattern == "" || !doublestar.ValidatePattern(pattern):
			bad = append(bad, text.CutBytes(text.OneLine(pattern), 100))
		case not == "" && slices.Contains([]string{"*", "**", "**/*"}, pattern):
			return nil, nil
		default:
			if isAnchored {
				pattern = "/" + pattern
			}
			patterns = append(patterns, not+pattern)
		}
	}
	return patterns, bad
}

// splitPatterns splits a text at commas and blanks outside of braces and brackets.
func splitPatterns(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(", \t\r\n\"'", r)
	})
}
