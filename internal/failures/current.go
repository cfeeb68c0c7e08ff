package failures

import (
	"encoding/json"
	"regexp"
	"strings"

	"muster/internal/lazyregexp"
)

// currentFormats are lines that name a test, a package or a file of tests that a check runs now or has just run: of go
// test, pytest, cargo, jest and vitest, TAP, and runners that print a mark before each name.
var currentFormats = []func() *regexp.Regexp{
	lazyregexp.New(`^=== (?:RUN|CONT) +(\S+)`),
	lazyregexp.New(`^ *--- (?:PASS|FAIL|SKIP): (\S+)`),
	lazyregexp.New(`^(?:ok|FAIL|\?) *\t(\S+)`),
	lazyregexp.New(`^(\S+\.py::\S+)(?: |$)`),
	lazyregexp.New(`^(\S+\.py) [.FEsxX]+ *\[ *\d+%\]`),
	lazyregexp.New(`^test (\S+)(?: - [a-z ]+)? \.\.\.`),
	lazyregexp.New(`^ *(?:PASS|FAIL|RUNS) +(\S+\.\S+)`),
	lazyregexp.New(`^(?:not )?ok \d+ (?:- )?(.+)$`),
	lazyregexp.New(`^ *[✓✔✗✕×] +(.+?)(?: \(?[\d.]+ ?m?s\)?)?$`),
}

// maxCurrent is how long a line is that is looked at: a longer one names no test.
const maxCurrent = 500

// Current returns the test, the package or the file of tests that a line of a check's output is about, "" where it is
// about none. It is for people who wait, so a line that it does not know costs nothing.
func Current(line string) string {
	if len(line) > maxCurrent {
		return ""
	}
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "{") { // go test -json
		var e struct{ Action, Package, Test string }
		if json.Unmarshal([]byte(line), &e) != nil || e.Action == "output" || e.Action == "" {
			return ""
		}
		if e.Test != "" {
			return e.Test
		}
		return e.Package
	}
	for _, f := range currentFormats {
		if m := f().FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return ""
}
