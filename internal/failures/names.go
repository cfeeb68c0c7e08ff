package failures

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/lazyregexp"
)

// The names are for comparing two checks: on a base where tests fail already, work may land as long as no other test
// fails. So a name must be the same each time, whatever the order in which tests run, and a list that may lack one is
// worse than none.
//
//   - go test names a package only after its tests, and one whose tests did not end is not named by them at all.
//   - pytest, jest and cargo count their failures at the end, and the number must be that of the names.
//   - vitest counts its failures too, and nextest names them once more after it has counted them.
//   - go test -json tells when a test begins, so a package that ends before its tests do is known.
//   - A test of TAP may be to do, and takes the parts that come before it with it.
//   - A runner that names two tests alike is taken for one that has not named all.
//   - An error of a compiler, or a failure that has no name, makes the list a part of what has failed.

// names collects the names of all tests that have failed, of which a Finder keeps no more than anybody reads. It takes
// only what a runner tells so that one can know that it is complete: go test, pytest, jest, vitest, cargo test and
// nextest, and TAP.
//
// Invariant: where isPartial is false and counted is expected, a test that has failed and is not in found was not run
// by one of these runners.
type names struct {
	found     map[string]bool
	isPartial bool     // something has failed that has no name
	isStopped bool     // the runner says that it has left out the tests that come after a failure
	open      []string // tests of Go of which the package comes later
	expected  int      // how many failures the runners have counted
	counted   int      // how many of those were named

	golang   goNames
	cargo    cargoNames
	tap      tapNames
	jestFile string          // the file of which jest tells
	errors   map[string]bool // tests of pytest that have failed before or after they ran
}

// The lines by which a runner tells its failures.
var (
	goPackage   = lazyregexp.New(`^FAIL\t(\S+)\s+(.*)$`)
	pytestName  = lazyregexp.New(`^(FAILED|ERROR) (\S.*?::[^\[]*?(?:\[.*?\])?)(?: - .*)?$`)
	pytestCount = lazyregexp.New(`^=* ?\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|` +
		`rerun|subtests \w+)\b.* in [\d.]+s\b`)
	pytestFailed = lazyregexp.New(`\b(\d+) (?:failed|errors?)\b`)
	jestFile     = lazyregexp.New(`^\s*(?:FAIL|PASS)\s+(?:\S+ )?(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$`)
	jestName     = lazyregexp.New(`^\s+● (.+)$`)
	jestCount    = lazyregexp.New(`^Tests:\s+.*?\b(\d+) failed`)
	vitestName   = lazyregexp.New(`^\s*FAIL\s+(?:\|[^|]*\|\s+)?(\S+\.[cm]?[jt]sx?) > (.+)$`)
	vitestCount  = lazyregexp.New(`^\s+Tests\s+(\d+) failed\b`)
	// vitestOther matches what vitest says of a file that cannot be read, and of an error outside of all tests.
	vitestOther = lazyregexp.New(`^\s*FAIL\s+\S.* \[ .* \]$|^⎯+ Unhandled (?:Errors?|Rejections?) ⎯+$`)
)

// A program that ends before its time has told only of the tests that had ended. Most runners show it by a count that
// is missing or by a result that is not there. Those that go on with the next program, and fail all the same, have
// words of their own for it.

// isAbort reports whether a line says that a program with tests was not built, or has ended before its time.
func isAbort(text string) bool {
	for _, begin := range []string{"error: could not compile", "panic: ", "Bail out!"} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	for _, part := range []string{"● Test suite failed to run", "The forked VM terminated",
		"Process 'Gradle Test Executor", "process didn't exit successfully: "} {
		if strings.Contains(text, part) {
			return !strings.Contains(text, "(exit status: 101") // cargo says so of each program with a failed test
		}
	}
	return false
}

// line takes one line.
func (n *names) line(raw []byte) {
	text := strings.TrimRight(string(raw), " \r")
	if strings.ContainsRune(text, '\x1b') {
		text = ansi.Strip(text)
	}
	switch {
	case strings.HasPrefix(text, `{"`):
		n.goEvent(raw)
	case strings.Contains(text, "--- FAIL: "):
		if m := formats[0].match().FindStringSubmatch(text); m != nil {
			n.open = append(n.open, group(formats[0].match(), m, "name"))
		}
	case strings.HasPrefix(text, "FAIL\t"):
		n.goPackage(text)
	case strings.HasPrefix(text, "ok  \t"):
		n.open = nil // what a passing test has printed
	case strings.HasPrefix(text, "FAILED "), strings.HasPrefix(text, "ERROR "):
		n.pytest(text)
	case isAbort(text):
		n.isPartial = true
	case strings.HasPrefix(text, "!!!"):
		n.isStopped = n.isStopped || strings.Contains(text, "stopping after") || strings.Contains(text, "Interrupted")
	case !n.tapLine(text) && !n.cargoLine(text):
		n.other(text)
	}
}

// pytest takes a line of the summary of pytest. A file that it could not read has no name here, but it is counted, so
// it is known that something is missing. A test that has failed and whose tear-down has failed counts twice.
func (n *names) pytest(text string) {
	m := pytestName().FindStringSubmatch(text)
	if m == nil {
		return
	}
	isNew := n.add(m[2])
	if m[1] != "ERROR" || n.errors[m[2]] {
		return
	}
	if n.errors == nil {
		n.errors = map[string]bool{}
	}
	if n.errors[m[2]] = true; !isNew {
		n.counted++
	}
}

// other takes a line of jest or vitest, or the last one of pytest.
func (n *names) other(text string) {
	switch {
	case strings.Contains(text, "● "):
		if m := jestName().FindStringSubmatch(text); m != nil && m[1] != noTest {
			n.add(n.jestFile + m[1])
		}
	case strings.Contains(text, "FAIL "), strings.Contains(text, "PASS "), strings.Contains(text, "⎯ Unhandled "):
		if m := jestFile().FindStringSubmatch(text); m != nil {
			n.jestFile = m[1] + "::"
		} else if m := vitestName().FindStringSubmatch(text); m != nil {
			n.add(m[1] + "::" + m[2])
		}
		n.isPartial = n.isPartial || vitestOther().MatchString(text)
	case strings.Contains(text, "Tests"):
		if m := firstOf(text, jestCount().FindStringSubmatch, vitestCount().FindStringSubmatch); m != nil {
			n.count(m[1])
		}
	case strings.Contains(text, " in ") && pytestCount().MatchString(text):
		for _, m := range pytestFailed().FindAllStringSubmatch(text, -1) {
			n.count(m[1])
		}
	}
}

// The last line of pytest is the only one that counts its failures and its errors, in an order that depends on what
// else has happened. So the line is recognised by its form, and the two counts are looked for in it:
// "1 failed, 2 xfailed, 1 error in 0.12s" has two failures.

// noTest is what jest heads the output of a file with, as if it were a test.
const noTest = "Console"

// firstOf returns the first match.
func firstOf(text string, matches ...func(string) []string) []string {
	for _, match := range matches {
		if m := match(text); m != nil {
			return m
		}
	}
	return nil
}

// count adds how many tests a runner says have failed.
func (n *names) count(digits string) {
	number, err := strconv.Atoi(digits)
	if n.expected += number; err != nil {
		n.isPartial = true
	}
}

// add adds a name, and reports whether it is new. jest names its failures twice.
func (n *names) add(name string) bool {
	if n.found == nil {
		n.found = map[string]bool{}
	}
	if n.found[name] {
		return false
	}
	n.found[name] = true
	n.counted++
	return true
}

// goPackage takes the line with which a package of Go has failed. Its tests were named before.
func (n *names) goPackage(text string) {
	m := goPackage().FindStringSubmatch(text)
	if m == nil || len(n.open) == 0 {
		n.isPartial = true // it was not built, or has ended by itself
		return
	}
	for _, name := range n.open {
		n.add(m[1] + "." + name)
		n.expected++
	}
	n.open = nil
}

// goNames is what is known of the packages of go test -json. Their tests are mixed with one another.
type goNames struct {
	failed map[string]bool // packages with a test that has failed
	dead   map[string]bool // packages in which something has panicked
	open   map[string]int  // tests that have begun and not ended
}

// goEvent takes a line of go test -json.
func (n *names) goEvent(raw []byte) {
	var e struct{ Action, Package, Test, Output string }
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	g := &n.golang
	if g.failed == nil {
		g.failed, g.dead, g.open = map[string]bool{}, map[string]bool{}, map[string]int{}
	}
	switch {
	case e.Action == "output" && strings.HasPrefix(e.Output, "panic: "):
		g.dead[e.Package] = true
	case e.Action == "run":
		g.open[e.Package]++
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip" && e.Action != "bench":
	case e.Test != "":
		g.open[e.Package]--
		if e.Action == "fail" {
			g.failed[e.Package] = true
			n.add(e.Package + "." + e.Test)
			n.expected++
		}
	case e.Action == "fail":
		// It was not built, or has ended before its time: the tests that come later have not run.
		n.isPartial = n.isPartial || !g.failed[e.Package] || g.dead[e.Package] || g.open[e.Package] > 0
	}
}

// Names returns the names of all tests that have failed, sorted. isComplete is false where the output and the reports
// do not tell all of them, or where something else than a test has failed. A test of which a report says that it has
// failed has the name that it has there. It is called after Failures.
func (f *Finder) Names() (all []string, isComplete bool) {
	n := &f.names
	n.endTAP()
	isOnlyHere := func(name string) bool { return !f.report.has(name) }
	for name := range n.found {
		if isOnlyHere(name) {
			all = append(all, name)
		}
	}
	all = slices.AppendSeq(all, maps.Keys(f.report.names))
	slices.Sort(all)
	hasOther := slices.ContainsFunc(f.all, func(x Failure) bool { return x.Name == "" })
	// A console that does not name each failure that it counts is no harm where the reports have that many.
	isTold := n.counted == n.expected || f.report.failed >= n.expected
	return all, len(all) > 0 && isTold && !n.isPartial && !f.report.isPartial && !hasOther &&
		!slices.ContainsFunc(n.open, isOnlyHere)
}

// IsStopped reports whether a runner says that it has not run all tests because one has failed, as cargo does, and
// pytest with -x. It is called after Failures.
func (f *Finder) IsStopped() bool { return f.names.isStopped }
