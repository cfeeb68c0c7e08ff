package failures

import (
	"strings"

	"muster/internal/lazyregexp"
)

// cargo test runs one program after the other and stops after the first with a failure, unless it has --no-fail-fast:
// then it says at the end which of them have failed. A program that was ended by a signal has counted nothing.
//
// nextest names a test when it fails, perhaps before it runs it again, and prints what the test has printed, which is
// what cargo test prints. So only what comes after its summary counts, which has each test that has failed in the end.

// cargoNames is what is known of the tests of cargo, and of nextest, which runs them one by one.
type cargoNames struct {
	target    string // the program, and the file that it is made of
	isNextest bool
	isAtEnd   bool // nextest has named its counts; the tests that have failed come after them
}

var (
	cargoTarget = lazyregexp.New(`^\s+(?:Running|Doc-tests) (?:unittests )?(\S+)` +
		`(?: \(\S*?([^/\\]+)-[0-9a-f]+(?:\.exe)?\))?`)
	cargoName  = lazyregexp.New(`^test (.+) \.\.\. FAILED$`)
	cargoCount = lazyregexp.New(`^test result: FAILED\. .*; (\d+) failed;`)
	cargoAll   = lazyregexp.New(`^error: \d+ targets? failed:$`)

	nextestBegin  = lazyregexp.New(`^\s+(?:Nextest run ID |Starting \d+ tests? across )`)
	nextestCount  = lazyregexp.New(`^\s+Summary \[[^\]]*\]\s+\d+(/\d+)? tests? run: (.*)$`)
	nextestFailed = lazyregexp.New(`\b(\d+) (?:failed|timed out|exec failed)\b`)
	nextestName   = lazyregexp.New(`^\s+(?:TRY \d+ )?(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+)\s+\[[^\]]*\]\s+` +
		`(?:\(\s*\d+/\d+\)\s+)?(\S+)\s+(\S.*)$`)
)

// cargoLine takes a line, and reports whether it is one of cargo test or nextest.
func (n *names) cargoLine(text string) bool {
	c := &n.cargo
	if !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "test ") && !strings.HasPrefix(text, "error: ") {
		return false
	}
	if nextestBegin().MatchString(text) {
		c.isNextest = true
	} else if m := nextestCount().FindStringSubmatch(text); m != nil {
		c.isNextest, c.isAtEnd = true, true
		n.isStopped = n.isStopped || m[1] != ""
		for _, failed := range nextestFailed().FindAllStringSubmatch(m[2], -1) {
			n.count(failed[1])
		}
	} else if c.isNextest {
		m := nextestName().FindStringSubmatch(text)
		if m != nil && c.isAtEnd {
			n.add(m[1] + " " + m[2])
		}
		// What a test prints under nextest is what cargo test prints of it.
		return m != nil || strings.HasPrefix(strings.TrimSpace(text), "test ")
	} else if m := cargoTarget().FindStringSubmatch(text); m != nil {
		// Each crate of a workspace has a src/lib.rs.
		if c.target = m[1]; m[2] != "" {
			c.target = m[2] + ":" + m[1]
		}
	} else if m := cargoName().FindStringSubmatch(text); m != nil {
		n.add(c.target + " " + m[1])
	} else if m := cargoCount().FindStringSubmatch(text); m != nil {
		n.count(m[1])
	} else if cargoAll().MatchString(text) {
		n.isStopped = false // with --no-fail-fast the rest has run
	} else if strings.HasPrefix(text, "error: test failed, to rerun") {
		n.isStopped = true
	} else {
		return false
	}
	return true
}
