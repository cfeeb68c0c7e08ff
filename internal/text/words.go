package text

import (
	"fmt"
	"strconv"
	"strings"
)

// Count returns a number with its noun: 1 task, 2 tasks. The noun is one whose plural ends in s.
func Count(n int, noun string) string { return strconv.Itoa(n) + " " + Plural(n, noun, noun+"s") }

// Plural returns the word for one thing, or the other for several.
func Plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// List names the first of some files, tasks and the like in a sentence, and says how many more there are.
func List(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
