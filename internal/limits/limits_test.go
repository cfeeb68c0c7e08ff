// Package limits holds the limits on the size and the form of the code, as tests. Each failure names the place, the value
// and the limit. The limits on who may import whom are in internal/importtest, and the linters' in .golangci.yml.
package limits

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
	"unicode/utf8"

	"muster/internal/testing/tier"
)

// The limits for each line, file, function and type outside tests.
const (
	maxColumns       = 120 // of a line; a tab counts tabWidth
	maxFileLines     = 400
	maxFunctionLines = 60 // from func to the closing brace
	maxMethods       = 30 // of a type
	tabWidth         = 4
)

// The limits for all packages that cmd/muster links.
const (
	maxCode         = 91_500 // lines with code, for all systems together
	minCommentShare = 15.0   // percent: lines of comments of all lines but blank ones
)

// TestSleeps checks that no test sleeps while something else works.
func TestSleeps(t *testing.T) {
	report(t, sleeps(sources(t, nil)), 0, "calls of time.Sleep")
}

// TestLimits reads all sources once and checks each limit. A later change removes these numbers.
func TestLimits(t *testing.T) {
	tier.All(t)
	all := sources(t, linkedPackages(t))
	t.Run("size", func(t *testing.T) { checkSize(t, all) })
	t.Run("lines", func(t *testing.T) { report(t, longLines(all), maxColumns, "columns") })
	t.Run("files", func(t *testing.T) { report(t, longFiles(all), maxFileLines, "lines") })
	t.Run("functions", func(t *testing.T) { report(t, longFunctions(all), maxFunctionLines, "lines") })
	t.Run("types", func(t *testing.T) { report(t, largeTypes(all), maxMethods, "methods") })
}

// checkSize checks the lines of code and of comments of all packages that cmd/muster links.
func checkSize(t *testing.T, all []source) {
	var sum counts
	for _, s := range all {
		if s.linked {
			sum.code += s.code
			sum.comments += s.comments
		}
	}
	share := 100 * float64(sum.comments) / float64(sum.code+sum.comments)
	t.Logf("the packages that cmd/muster links have %d lines of code; %.1f%% of their lines are comments", sum.code, share)
	if sum.code > maxCode {
		t.Errorf("%d lines of code are more than %d", sum.code, maxCode)
	}
	if share < minCommentShare {
		t.Errorf("%.1f%% comments are fewer than %.1f%%", share, minCommentShare)
	}
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

// longFiles returns the files of more than maxFileLines.
func longFiles(all []source) (places []string) {
	for _, s := range all {
		if lines := strings.Count(string(s.text), "\n"); lines > maxFileLines && !s.test {
			places = append(places, fmt.Sprintf("%s: %d lines", s.path, lines))
		}
	}
	return places
}

// longFunctions returns the functions of more than maxFunctionLines.
func longFunctions(all []source) (places []string) {
	for _, s := range all {
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test {
				continue
			}
			at := s.fset.Position(f.Pos())
			if lines := s.fset.Position(f.End()).Line - at.Line + 1; lines > maxFunctionLines {
				places = append(places, fmt.Sprintf("%s:%d: %s has %d lines", s.path, at.Line, f.Name.Name, lines))
			}
		}
	}
	return places
}

// largeTypes returns the types with more than maxMethods.
func largeTypes(all []source) (places []string) {
	methods := methodsByType(all)
	for _, name := range sortedByCount(methods) {
		if n := methods[name]; n > maxMethods {
			places = append(places, fmt.Sprintf("%s has %d methods", name, n))
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
