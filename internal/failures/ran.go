package failures

import (
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// ran says from the words of test runners whether any test has run.
type ran struct {
	none  string // the first line that says that there was none
	isAny bool   // a line says that one has
}

// ranNone matches what runners print where they have found no test, and end with success all the same.
var ranNone = lazyregexp.New(`(?i)^(?:` + strings.Join([]string{
	`ran 0 tests\b`, `no tests ran\b.*`, `found 0 test\(s\)`, // unittest, Django, pytest, dart
	`collected 0 items`, `=+ no tests ran`, // pytest
	`(?:\?\s+)?\S+\s+\[no test files\]`, `ok\s.*\[no tests to run\]`, `testing: warning: no tests to run`, // go
	`go: warning: .*matched no packages`, `no packages to test`,
	`running 0 tests`, `starting 0 tests`, // cargo, nextest
	`no tests found\b`, `no test files found\b`, `no test suites? found`, `tests:? +0 total`, // jest, vitest
	`0 passing\b`, `[#ℹ] tests 0$`, `1\.\.0\b`, // mocha, node, TAP
	`(?:> task )?:?\S*test no-source`,                                        // gradle
	`(?:\[\w+\] )*no tests to run`, `(?:\[\w+\] )*tests run: 0, failures: 0`, // maven
	`no test is available in`, `no test matches`, `no test source files`, `test summary: total: 0\b`, // dotnet
	`no tests were found`, `no tests ran\.`, `no tests were executed`, // ctest, flutter, sbt
	`0 examples, 0 failures`, `no examples found`, // rspec
	`no tests executed`, `0 runs, 0 assertions`, `0 tests, 0 assertions`, // PHPUnit, minitest, test-unit
	`executed 0 (?:of 0|tests)`, `test run with 0 tests`, // karma, swift
	`there are no tests to run`, `0 tests, 0 failures`, // mix
	`0 specs\b`, `0 pass$`, // jasmine, bun
}, "|") + `)`)

// ranSome matches what they print where a test has run.
var ranSome = lazyregexp.New(`(?i)^(?:` + strings.Join([]string{
	`ran [1-9]\d* tests?\b`, `(?:=+ )?(?:.*[ ,])?[1-9]\d* (?:passed|failed)\b`, // unittest, pytest, jest, vitest, cargo
	`ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?:\s+coverage:.*)?$`, `fail\s+\S+\s+[\d.]+s$`, `--- (?:pass|fail)`, // go
	`running [1-9]\d* tests?$`, `starting [1-9]\d* tests?`,
	`[1-9]\d* (?:passing|failing)\b`, `[#ℹ] tests [1-9]`, `(?:not )?ok [1-9]\d*\b`, // mocha, node, TAP
	`> task \S*test(?: up-to-date| from-cache| failed)?$`,                                          // gradle
	`(?:\[\w+\] )*tests run: [1-9]`,                                                                // maven
	`passed!  - failed:`, `failed!  - failed:`, `total tests: [1-9]`, `test summary: total: [1-9]`, // dotnet
	`\d+% tests passed, \d+ tests? failed out of [1-9]`, // ctest
	`[1-9]\d* (?:examples?|runs|tests|specs?), `,        // rspec, minitest, mix, jasmine
	`ok \([1-9]`, `tests: [1-9]`, // PHPUnit
	`executed [1-9]\d* (?:of|tests?)`, `test run with [1-9]`, // swift
	`all tests passed`, `[1-9]\d* pass$`, // flutter, bun
}, "|") + `)`)

// take looks at a line without colours.
func (r *ran) take(line string) {
	if r.isAny || len(line) > maxLine {
		return
	}
	line = strings.TrimLeft(line, " \t")
	switch {
	case ranNone().MatchString(line):
		if r.none == "" {
			r.none = text.CutBytes(strings.Trim(text.OneLine(line), "= "), 100)
		}
	case ranSome().MatchString(line):
		r.isAny = true
	}
}

// RanNone returns the line of the output that says that no test was found, "" where there is none, or where a test has
// run. Most programs that are no test runners say nothing of either.
func (f *Finder) RanNone() string {
	if f.ran.isAny {
		return ""
	}
	return f.ran.none
}
