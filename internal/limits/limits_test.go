// Package limits tests the form of the code: the length of lines, and that no test sleeps. Each failure names the place, the
// value and the limit. The limits on who may import whom are in internal/importtest, and the linters' in .golangci.yml.
package limits

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limit for each line outside tests.
const (
	maxColumns = 120 // a tab counts tabWidth
	tabWidth   = 4
)

// TestLimits reads all sources once and checks that no line is too long, and that no test sleeps while something else
// works.
func TestLimits(t *testing.T) {
	all := sources(t)
	t.Run("lines", func(t *testing.T) { report(t, longLines(all), maxColumns, "columns") })
	t.Run("sleeps", func(t *testing.T) { report(t, sleeps(all), 0, "calls of time.Sleep") })
}

// longLines returns the lines of more than maxColumns.
func longLines(all []source) (places []string) {
	for _, s := range all {
		if s.test {
			continue
		}
		number := 0
		for line := range strings.Lines(string(s.text)) {
			number++
			line = strings.TrimRight(line, "\r\n")
			columns := utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabWidth-1)
			if columns > maxColumns {
				places = append(places, fmt.Sprintf("%s:%d: %d columns", s.path, number, columns))
			}
		}
	}
	return places
}

// sleeps returns the calls of time.Sleep in tests outside testing/synctest. A test runs in a bubble if it calls synctest
// itself, or a function of its package that starts a bubble. Any other function that runs only in a bubble has the word synctest in
// its comment. A test that waits for a real process calls internal/testing/wait.
func sleeps(all []source) (places []string) {
	bubbles := map[string]bool{} // by package and name
	for known := -1; known < len(bubbles); {
		known = len(bubbles)
		for _, s := range all {
			for _, d := range s.syntax.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && s.test && (usesName(f, "synctest") || !strings.HasPrefix(f.Name.Name, "Test") &&
					uses(f, func(name string) bool { return bubbles[s.pkg+"."+name] })) {
					bubbles[s.pkg+"."+f.Name.Name] = true
				}
			}
		}
	}
	for _, s := range all {
		if !s.test {
			continue
		}
		inBubble := func(name string) bool { return name == "synctest" || bubbles[s.pkg+"."+name] }
		for _, at := range s.sleeps(inBubble) {
			places = append(places, fmt.Sprintf("%s:%d: time.Sleep", s.path, at.Line))
		}
	}
	return places
}

// report fails the test if a place breaks a limit.
func report(t *testing.T, places []string, limit int, unit string) {
	t.Helper()
	if len(places) > 0 {
		t.Errorf("%d places have more than %d %s:\n%s", len(places), limit, unit, strings.Join(places, "\n"))
	}
}
