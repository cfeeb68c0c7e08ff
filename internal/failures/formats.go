package failures

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// format is how a program begins to tell a failure. The expression has groups with the names name, file, line and text.
type format struct {
	has       string // a text that such a line contains, which is quicker to look for
	match     func() *regexp.Regexp
	block     bool                  // the next lines belong to it
	ends      func() *regexp.Regexp // a line that does not belong to it any more
	lastWords bool                  // the indented lines before it belong to it
	summary   bool                  // it names failures that were told before, perhaps with the file in front
	inside    bool                  // in another failure's lines it is a part of that one
	vague     bool                  // it counts only if its lines name a place
	keep      func() *regexp.Regexp // the lines of the block that say what went wrong; nil: all
	below     bool                  // an error in the file that stands alone in a line above
}

// formats are the known ones. Of those that match a line the first counts.
var formats = []format{
	// Go: go test, go vet, go build, and what the runtime prints.
	{has: "--- FAIL: ", match: lazyregexp.New(`^\s*--- FAIL: (?P<name>\S+)`), block: true, lastWords: true,
		ends: lazyregexp.New(`^(FAIL|ok|PASS|exit status|=== )|^\s*--- (PASS|FAIL|SKIP|BENCH): `)},
	{has: "panic: ", match: lazyregexp.New(`^(?P<text>panic: .*)`), block: true, inside: true,
		ends: lazyregexp.New(`^(FAIL|ok|exit status)\s`)},
	{has: "WARNING: DATA RACE", match: lazyregexp.New(`^WARNING: DATA (?P<name>RACE)`), block: true,
		ends: lazyregexp.New(`^====`)},

	// Rust: cargo test, rustc and clippy.
	{has: "panicked at", match: lazyregexp.New(`^\s*thread '(?P<name>[^']+)'.* panicked at (?:'.*', )?` +
		`(?P<file>[^\s:]+):(?P<line>\d+)`), block: true,
		ends: lazyregexp.New(`^\s*(note:|----|stack backtrace|failures:)`)},
	{has: "... FAILED", match: lazyregexp.New(`^test (?P<name>\S.*) \.\.\. FAILED$`)},
	{has: "] ", match: lazyregexp.New(`^\s+(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+)\s+\[ *[\d.]+s\]\s+` + // nextest
		`(?:\(\s*\d+/\d+\)\s+)?\S+\s+(?P<name>\S.*)$`)},
	{has: "error", match: lazyregexp.New(`^(?P<text>error(\[E\d+\])?: .*)`), block: true, vague: true,
		inside: true, ends: lazyregexp.New(`^\s*$`)},

	// Python: pytest, unittest, and a traceback.
	{has: "____", match: lazyregexp.New(`^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S[^_].*?) _{3,}$`),
		block: true, ends: lazyregexp.New(`^(=|_|-){8,}`), keep: lazyregexp.New(`^[E>] `)},
	{has: "FAILED ", match: lazyregexp.New(`^FAILED (?P<name>\S+::\S+)(?: - (?P<text>.*))?$`), summary: true},
	{has: "ERROR ", match: lazyregexp.New(`^ERROR (?P<name>\S+\.py(?:::\S+)?)(?: - (?P<text>.*))?$`), summary: true},
	{has: ": test", match: lazyregexp.New(`^(?:FAIL|ERROR): (?P<name>test\w*(?: \(.*\))?)`), block: true,
		ends: lazyregexp.New(`^=====|^Ran \d+ test`)},
	{has: "Traceback (most", match: lazyregexp.New(`^Traceback \(most recent call last\):`), block: true, inside: true,
		ends: lazyregexp.New(`^$`)},

	// JavaScript and TypeScript: jest, vitest, mocha, node --test and TAP, tsc, eslint.
	{has: "● ", match: lazyregexp.New(`^\s*● (?P<name>.*\S)`),
		block: true, ends: lazyregexp.New(`^(Test Suites:|\s*(FAIL|PASS) |Summary of all)`)},
	{has: " > ", match: lazyregexp.New(`^\s*FAIL\s+(?P<file>[\w./@-]+\.[cm]?[jt]sx?) > (?P<name>.*\S)`), block: true,
		ends: lazyregexp.New(`^\s*⎯{8,}`)},
	{has: ") ", match: lazyregexp.New(`^  \d+\) (?P<name>\S.*?):?$`), block: true, // of Ruby's rspec as well
		ends: lazyregexp.New(`^\s*\d+ (passing|failing)|^(Finished in|Failed examples)`)},
	{has: "not ok ", match: lazyregexp.New(`^\s*not ok \d+\s*-?\s*(?P<name>.*\S)`), block: true,
		ends: lazyregexp.New(`^\s*(not )?ok \d+|^\s*\.\.\.$|^\s*\d+\.\.\d+|^\s*# Subtest: |^Dubious|^Failed \d+/`)},
	{has: "Failed test '", match: lazyregexp.New(`^\s*#\s+Failed test '(?P<name>.*)'$`), block: true,
		ends: lazyregexp.New(`^\s*# Looks like|^\s*[^#\s]`)},
	{has: "✖ ", match: lazyregexp.New(`^\s*✖ (?P<name>.*?) \([\d.]+ms\)$`), block: true,
		ends: lazyregexp.New(`^\s*(✔|ℹ|▶) `)},
	{has: "error TS", match: lazyregexp.New(`^(?P<file>[^\s(:]+)[(:](?P<line>\d+)[,:]\d+\)?(?::| -) ` +
		`(?P<text>error TS\d+: .*)`)},
	{has: "error  ", match: lazyregexp.New(`^\s+(?P<line>\d+):\d+\s+(?P<text>error\s+.*)`), below: true},

	// Java, Kotlin, .NET, Ruby, PHP, Elixir.
	{has: "[ERROR]", match: lazyregexp.New(`^\[ERROR\]\s+(?P<file>/?[^\s:]+\.\w+):\[(?P<line>\d+),\d+\] (?P<text>.*)`)},
	{has: "[ERROR]",
		match: lazyregexp.New(`^\[ERROR\]\s+(?P<name>(?P<file>[\w.$]+)\.\w+):(?P<line>\d+)(?:->\S+)? (?P<text>.*)`)},
	{has: " FAILED", match: lazyregexp.New(`^(?P<name>\w\S* > .*\S) FAILED$`),
		block: true, ends: lazyregexp.New(`^\S`)},
	{has: ": error CS",
		match: lazyregexp.New(`^\s*(?P<file>[^\s(]+)\((?P<line>\d+),\d+\): (?P<text>error CS\d+: .*?)(?: \[.*)?$`)},
	{has: "Failed ", match: lazyregexp.New(`^\s+Failed (?P<name>\S.*?) \[[<\d].*\]$`), block: true,
		ends: lazyregexp.New(`^\s*(Failed|Passed)[ !]`)},
	{has: "rspec ", match: lazyregexp.New(`^rspec (?P<file>\S+):(?P<line>\d+) # (?P<name>.*)`), summary: true},
	{has: ") ", match: lazyregexp.New(`^\d+\) (?P<name>\S+::\S.*)`),
		block: true, ends: lazyregexp.New(`^\d+\) |^(FAILURES|ERRORS)`)},

	// Compilers and linters that print FILE:LINE:COLUMN.
	{has: ": ", match: lazyregexp.New(`^(?:vet: )?(?P<file>[\w./@+\\-]+\.\w+):(?P<line>\d+)(?::\d+)?: ` +
		`(?P<text>(?i:fatal )?(?i:error)\b.*)`)},
	{has: ".go:", match: lazyregexp.New(`^(?:vet: )?(?P<file>[\w./@+\\-]+\.go):(?P<line>\d+):\d+: (?P<text>.*)`)},
	{has: ".py:", match: lazyregexp.New(`^(?P<file>[\w./@+\\-]+\.py):(?P<line>\d+):\d+: (?P<text>[A-Z]+\d+ .*)`)},
	{has: "undefined reference", match: lazyregexp.New(`^(?P<text>.*undefined reference to .*)`)},
}

// placePatterns are how a line names a file with a line, in the lines below that which begins a failure.
var placePatterns = []func() *regexp.Regexp{
	lazyregexp.New(`File "([^"]+)", line (\d+)`),
	lazyregexp.New(` in (\S+):line (\d+)`),
	lazyregexp.New(`(?:file|at) ([^\s,]+\.\w+),? line (\d+)`), // of bats, and of Perl
	lazyregexp.New(`(?:^|[\s('"❯])((?:file://)?\.{0,2}/?[\w@+-][\w./@+\\-]*\.[A-Za-z]\w{0,5}):(\d+)`),
}

// isForeign reports whether a file is not the project's own: a library, or the test runner itself.
func isForeign(file string) bool {
	for _, part := range []string{"node_modules/", "site-packages/", "/lib/python", "/usr/lib/", "node:", "/rustc/",
		".cargo/registry/", "/go/src/", "/pkg/mod/", "vendor/", "org.junit.", "java.base/"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	return false
}

// isNoise reports whether a line says nothing about why a test failed.
func isNoise(line string) bool {
	for _, prefix := range []string{
		"at ", "goroutine ", "testing.tRunner", "panic(", "created by ", "|", "====", "----", "_ _", "^",
		"~", "⎯", "duration_ms:", "failureType:", "stack: |", "# ./", "Stack Trace:", "Traceback (most",
	} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "" || line == "---" || strings.HasSuffix(line, "|") || isForeign(line)
}

// goEvent takes a line of go test -json, and reports whether it is one. What a test has printed is taken when the test
// has failed.
func (f *Finder) goEvent(raw []byte) bool {
	var e struct{ Action, Package, Test, Output string }
	if json.Unmarshal(raw, &e) != nil || e.Action == "" {
		return false
	}
	key := e.Package + " " + e.Test
	if f.goJSON == nil {
		f.goJSON = map[string][]string{}
	}
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" {
			f.text(strings.TrimRight(e.Output, "\n"))
		} else if lines := f.goJSON[key]; len(lines) < maxBlock {
			f.goJSON[key] = append(lines, strings.TrimRight(e.Output, "\n"))
		}
	case "pass", "skip":
		delete(f.goJSON, key)
	case "fail":
		for _, line := range f.goJSON[key] {
			f.text(line)
		}
		delete(f.goJSON, key)
		if f.open = nil; e.Test == "" {
			f.goPanics(e.Package)
		}
	}
	return true
}

// goPanics takes the panics that the tests of a package have printed which did not end: the package ended with them.
func (f *Finder) goPanics(name string) {
	for _, key := range slices.Sorted(maps.Keys(f.goJSON)) {
		lines := f.goJSON[key]
		isPanic := func(line string) bool { return strings.HasPrefix(line, "panic: ") }
		if at := slices.IndexFunc(lines, isPanic); at >= 0 && strings.HasPrefix(key, name+" ") {
			for _, line := range lines[at:] {
				f.text(line)
			}
			delete(f.goJSON, key)
		}
	}
	f.open = nil
}
