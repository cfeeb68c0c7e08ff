package failures

import (
	"regexp"
	"strings"

	"muster/internal/lazyregexp"
)

// format is a line by which a test runner or a compiler tells something. The expression has groups with the names name,
// file, line and text, or scope.
type format struct {
	has   string // a text that such a line contains, which is quicker to look for
	match func() *regexp.Regexp
	tells tells  // what it tells about the names of failed tests
	full  string // the name that the test has there, as a template of the groups; "" is ${name}

	// These say what people read of a failure that the line begins.
	ends      func() *regexp.Regexp // the first line that does not belong to it any more; nil: it is one line
	keep      func() *regexp.Regexp // the lines of it that say what went wrong; nil: all
	lastWords bool                  // the indented lines before it belong to it
	summary   bool                  // it names failures that were told before, perhaps with the file in front
	inside    bool                  // in another failure's lines it is a part of that one
	vague     bool                  // it counts only if its lines name a place
	below     bool                  // it is in the file that the last line without an indentation names
}

// tells is what a line tells about the names of failed tests.
type tells int

const (
	nothing     tells = iota
	aTest             // a failed test, which is counted elsewhere
	aScopedTest       // a failed test of a scope; where none was told, it is what a test has printed
	aScope            // what the next tests belong to
	aCount            // how many have failed; a group scope says that tests were left out
	aGoTest           // a failed test, of which the package comes later
	aGoPackage        // a failed package
	aGoSuccess        // a package without failures
	aTAPTest          // a failed test of TAP
	aLoss             // something has failed that has no name, or has ended before its time
	aStop             // tests were left out after a failure
	noStop            // they were not
)

// Parts of expressions.
const (
	pytestTest  = `(?P<name>\S.*?::[^\[]*?(?:\[.*?\])?)(?: - (?P<text>.*))?$`
	pytestError = `(?P<name>\S+\.py(?:::[^\[]*?(?:\[.*?\])?)?)(?: - (?P<text>.*))?$`
	jsFile      = `\S+\.[cm]?[jt]sx?`
)

var (
	jestFile = lazyregexp.New(`^\s*(?:FAIL|PASS)\s+(?:\S+ )?(?P<scope>` + jsFile + `)(?: \([\d.]+ m?s\))?$`)
	jestEnds = lazyregexp.New(`^(Test Suites:|\s*(FAIL|PASS) |Summary of all)`)
)

// formats are the known ones. Of those that match a line the first counts.
var formats = []format{
	// Go: go test, and what the runtime prints.
	{has: "--- FAIL: ", match: lazyregexp.New(`^\s*--- FAIL: (?P<name>\S+)`), tells: aGoTest, lastWords: true,
		ends: lazyregexp.New(`^(FAIL|ok|PASS|exit status|=== )|^\s*--- (PASS|FAIL|SKIP|BENCH): `)},
	{has: "FAIL\t", match: lazyregexp.New(`^FAIL\t(?P<scope>\S+)`), tells: aGoPackage},
	{has: "ok  \t", match: lazyregexp.New(`^ok  \t`), tells: aGoSuccess},
	{has: "panic: ", match: lazyregexp.New(`^(?P<text>panic: .*)`), tells: aLoss, inside: true,
		ends: lazyregexp.New(`^(FAIL|ok|exit status)\s`)},
	{has: "WARNING: DATA RACE", match: lazyregexp.New(`^WARNING: DATA (?P<name>RACE)`), ends: lazyregexp.New(`^====`)},

	// Rust: cargo test, nextest and rustc. A program that ends with 101 has told of all its failed tests.
	{has: "Running ", match: lazyregexp.New(`^\s+Running (?:unittests )?(?P<file>\S+) ` +
		`\(\S*?(?P<scope>[^/\\]+)-[0-9a-f]+(?:\.exe)?\)`), tells: aScope, full: "${scope}:${file} "},
	{has: "Doc-tests ", match: lazyregexp.New(`^\s+Doc-tests (?P<scope>\S+)`), tells: aScope, full: "${scope} "},
	{has: "... FAILED", match: lazyregexp.New(`^test (?P<name>\S.*) \.\.\. FAILED$`), tells: aScopedTest},
	{has: "test result: FAILED", match: lazyregexp.New(`^test result: FAILED\. `), tells: aCount},
	{has: "] ", match: lazyregexp.New(`^\s+(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+)\s+\[[^\]]*\]\s+(?:\(\s*\d+/\d+\)\s+)?` +
		`(?P<scope>\S+)\s+(?P<name>\S.*)$`), tells: aTest, full: "${scope} ${name}"},
	{has: "Summary [", match: lazyregexp.New(`^\s+Summary \[[^\]]*\]\s+\d+(?P<scope>/\d+)? tests? run: `),
		tells: aCount},
	{has: "panicked at", match: lazyregexp.New(`^\s*thread '(?P<name>[^']+)'.* panicked at (?:'.*', )?` +
		`(?P<file>[^\s:]+):(?P<line>\d+)`), ends: lazyregexp.New(`^\s*(note:|----|stack backtrace|failures:)`)},
	{has: "error: test failed", match: lazyregexp.New(`^error: test failed, to rerun`), tells: aStop},
	{has: " failed:", match: lazyregexp.New(`^error: \d+ targets? failed:$`), tells: noStop},
	{has: "error: could not", match: lazyregexp.New(`^error: could not compile`), tells: aLoss},
	{has: "process didn't exit", match: lazyregexp.New(`\((?:signal|exit (?:status|code): ` +
		`(?:0x\w+|\d\d?|10[02-9]|1[1-9]\d|2\d\d)\b)`), tells: aLoss},
	{has: "error", match: lazyregexp.New(`^(?P<text>error(\[E\d+\])?: .*)`), vague: true, inside: true,
		ends: lazyregexp.New(`^\s*$`)},

	// Python: pytest, unittest, and a traceback.
	{has: "____", match: lazyregexp.New(`^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S[^_].*?) _{3,}$`),
		ends: lazyregexp.New(`^(=|_|-){8,}`), keep: lazyregexp.New(`^[E>] `)},
	{has: "FAILED ", match: lazyregexp.New(`^FAILED ` + pytestTest), tells: aTest, summary: true},
	{has: "ERROR ", match: lazyregexp.New(`^ERROR ` + pytestError), tells: aTest, summary: true},
	{has: " in ", match: lazyregexp.New(`^=* ?\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|` +
		`errors?|rerun|subtests \w+)\b.* in [\d.]+s\b`), tells: aCount},
	{has: "!!!", match: lazyregexp.New(`^!!!.*(?:stopping after|Interrupted)`), tells: aStop},
	{has: ": test", match: lazyregexp.New(`^(?:FAIL|ERROR): (?P<name>test\w*(?: \(.*\))?)`),
		ends: lazyregexp.New(`^=====|^Ran \d+ test`)},
	{has: "Traceback (most", match: lazyregexp.New(`^(?P<text>)Traceback \(most recent call last\):`), inside: true,
		ends: lazyregexp.New(`^$`)},

	// JavaScript: jest, vitest, mocha (and Ruby's rspec), node --test.
	{has: "● Console", match: lazyregexp.New(`^\s*● Console$`)}, // heads the output of a file
	{has: "● Test suite", match: lazyregexp.New(`^\s*● (?P<name>Test suite failed to run)`), tells: aLoss,
		ends: jestEnds},
	{has: "● ", match: lazyregexp.New(`^\s*● (?P<name>.*\S)`), tells: aScopedTest, ends: jestEnds},
	{has: "FAIL ", match: jestFile, tells: aScope, full: "${scope}::"},
	{has: "PASS ", match: jestFile, tells: aScope, full: "${scope}::"},
	{has: " > ", match: lazyregexp.New(`^\s*FAIL\s+(?:\|[^|]*\|\s+)?(?P<file>` + jsFile + `) > (?P<name>.*\S)`),
		tells: aTest, full: "${file}::${name}", ends: lazyregexp.New(`^\s*⎯{8,}`)},
	{has: " [ ", match: lazyregexp.New(`^\s*FAIL\s+\S.* \[ .* \]$`), tells: aLoss}, // a file that vitest cannot read
	{has: "⎯ Unhandled ", match: lazyregexp.New(`^⎯+ Unhandled (?:Errors?|Rejections?) ⎯+$`), tells: aLoss},
	{has: "Tests", match: lazyregexp.New(`^Tests:\s|^\s+Tests\s+\d`), tells: aCount},
	{has: ") ", match: lazyregexp.New(`^  \d+\) (?P<name>\S.*?):?$`),
		ends: lazyregexp.New(`^\s*\d+ (passing|failing)|^(Finished in|Failed examples)`)},
	{has: "✖ ", match: lazyregexp.New(`^\s*✖ (?P<name>.*?) \([\d.]+ms\)$`), ends: lazyregexp.New(`^\s*(✔|ℹ|▶) `)},

	// TAP.
	{has: "not ok", match: lazyregexp.New(`(?i)^ *not ok\b.*[^\\]# *(?:todo|skip)`)}, // it was expected
	{has: "not ok", match: lazyregexp.New(`^ *not ok\b(?: +\d+)?(?: +-)?$`), tells: aLoss},
	{has: "not ok", match: lazyregexp.New(`^ *not ok(?: +\d+)?(?: +-)? +(?P<name>\S.*?)` +
		`(?: # time=\S+(?: \{)?)?$`), tells: aTAPTest,
		ends: lazyregexp.New(`^\s*(not )?ok \d+|^\s*\.\.\.$|^\s*\d+\.\.\d+|^\s*# Subtest: `)},
	{has: "Bail out!", match: lazyregexp.New(`^Bail out!`), tells: aLoss},

	// Maven and Gradle, whose failed tests are in their reports.
	{has: "The forked VM terminated", match: lazyregexp.New(``), tells: aLoss},
	{has: "Process 'Gradle Test Executor", match: lazyregexp.New(``), tells: aLoss},

	// eslint, below the file's name.
	{has: "error  ", match: lazyregexp.New(`^\s+(?P<line>\d+):\d+\s+(?P<text>error\s+.*)`), below: true},

	// Compilers and linters: FILE:LINE:COLUMN: error, FILE(LINE,COLUMN): error TS1.
	{has: "error ", match: lazyregexp.New(`^\s*(?P<file>[^\s(:]+)[(:](?P<line>\d+)[,:]\d+\)?(?::| -) ` +
		`(?P<text>error [A-Z]+\d+: .*?)(?: \[.*)?$`)},
	{has: ": ", match: lazyregexp.New(`^(?:vet: )?(?P<file>[\w./@+\\-]+\.\w+):(?P<line>\d+)(?::\d+)?: ` +
		`(?P<text>(?i:fatal )?(?i:error)\b.*)`)},
	{has: ".go:", match: lazyregexp.New(`^(?:vet: )?(?P<file>[\w./@+\\-]+\.go):(?P<line>\d+):\d+: (?P<text>.*)`)},
}

// formatOf returns the format of a line with the match of its expression, or nil.
func formatOf(line string) (*format, []int) {
	for i := range formats {
		if x := &formats[i]; strings.Contains(line, x.has) {
			if at := x.match().FindStringSubmatchIndex(line); at != nil {
				return x, at
			}
		}
	}
	return nil, nil
}

// begins reports whether the line begins a failure that people read.
func (x *format) begins() bool {
	return x.match().SubexpIndex("name") >= 0 || x.match().SubexpIndex("text") >= 0
}

// group returns a named group of a match, "" where the expression has none of that name.
func (x *format) group(line string, at []int, name string) string {
	if i := x.match().SubexpIndex(name); i >= 0 && at[2*i] >= 0 {
		return strings.TrimSpace(line[at[2*i]:at[2*i+1]])
	}
	return ""
}

// placePatterns are how a line names a file with a line, in the lines below that which begins a failure.
var placePatterns = []func() *regexp.Regexp{
	lazyregexp.New(`File "([^"]+)", line (\d+)`),
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
		"~", "⎯", "duration_ms:", "failureType:", "stack: |", "# ./", "Traceback (most",
	} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "" || line == "---" || strings.HasSuffix(line, "|") || isForeign(line)
}
