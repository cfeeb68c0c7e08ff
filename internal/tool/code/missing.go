package code

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// explainMissing says why an edit has not found its old text: the model most often gets the whitespace
// wrong, copies the line numbers that read_file shows, or has not seen a later change.
func explainMissing(name, text, old string) error {
	// The newlines at both ends of old are left out, because the lines between them are what the model means.
	have, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	if bare, ok := cutLineNumbers(want); ok {
		if at := findLines(have, bare, trimCR); at >= 0 {
			return fmt.Errorf("old_text is not in %s, but without the line numbers it is, at line %d: "+
				"leave out the numbers and tabs that read_file shows", name, at+1)
		}
	}
	if strings.TrimSpace(old) == "" {
		return fmt.Errorf("old_text is not in %s: there is no such whitespace", name)
	}
	if at := findLines(have, want, removeSpace); at >= 0 {
		return fmt.Errorf("old_text is not in %s, but lines %d-%d are the same apart from whitespace. They are:\n%s",
			name, at+1, at+len(want), numberLines(have, at, min(at+len(want), at+maxSnippetLines)))
	}
	// The first line that says something shows the place that is meant, if it is there. A brace alone says
	// nothing.
	i := slices.IndexFunc(want, func(line string) bool { return len(removeSpace(line)) >= 4 })
	if i >= 0 {
		if at := findLines(have, want[i:i+1], removeSpace); at >= 0 {
			from := max(0, at-i-1)
			to := min(len(have), from+len(want)+2, from+maxSnippetLines)
			return fmt.Errorf("old_text is not in %s. Its line %d is there as line %d, "+
				"but what is around it differs:\n%s", name, i+1, at+1, numberLines(have, from, to))
		}
	}
	return fmt.Errorf("old_text is not in %s: read the file again, it may have changed", name)
}

// findLines returns the index in have of the first line of want, or -1. Lines are compared as normalize
// leaves them.
func findLines(have, want []string, normalize func(string) string) int {
	normalizeAll := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = normalize(line)
		}
		return out
	}
	have, want = normalizeAll(have), normalizeAll(want)
	for at := 0; at+len(want) <= len(have); at++ {
		if slices.Equal(have[at:at+len(want)], want) {
			return at
		}
	}
	return -1
}

// trimCR removes the carriage return of a line that ends with CRLF.
func trimCR(line string) string { return strings.TrimRight(line, "\r") }

// removeSpace removes all whitespace of a line.
func removeSpace(line string) string { return strings.Join(strings.Fields(line), "") }

// cutLineNumbers removes the number and the tab that read_file puts before each line. ok is false unless
// every line has them.
func cutLineNumbers(lines []string) (bare []string, ok bool) {
	for _, line := range lines {
		number, text, found := strings.Cut(strings.TrimLeft(line, " "), "\t")
		if _, err := strconv.Atoi(number); !found || err != nil {
			return nil, false
		}
		bare = append(bare, text)
	}
	return bare, true
}
