package failures

import (
	"encoding/json"
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
//   - A runner that names two tests alike is taken for one that has not named all.
//   - An error of a compiler, or a failure that has no name, makes the list a part of what has failed.

// names collects the names of all tests that have failed, of which a Finder keeps no more than anybody reads. It takes
// only what a runner tells so that one can know that it is complete: go test, pytest, jest, cargo test, and TAP.
//
// Invariant: where isPartial is false, a test that has failed and is not in found was not run by one of these runners.
type names struct {
	found     map[string]bool
	isPartial bool     // something has failed that has no name
	isStopped bool     // the runner says that it has left out the tests that come after a failure
	open      []string // tests of Go of which the package comes later
	target    string   // what cargo runs
	expected  int      // how many failures the runners have counted
	counted   int      // how many of those were named
	goFailed  map[string]bool
}

// The lines by which a runner tells its failures.
var (
	goPackage   = lazyregexp.New(`^FAIL\t(\S+)\s+(.*)$`)
	pytestName  = lazyregexp.New(`^FAILED (\S+::.+?)(?: - .*)?$`)
	pytestCount = lazyregexp.New(`^=* ?(?:(\d+) failed)?.*\bin [\d.]+s\b.*$`)
	cargoTarget = lazyregexp.New(`^\s+(?:Running|Doc-tests) (?:unittests )?(\S+)`)
	cargoName   = lazyregexp.New(`^test (.+) \.\.\. FAILED$`)
	cargoCount  = lazyregexp.New(`^test result: FAILED\. .*; (\d+) failed;`)
	jestName    = lazyregexp.New(`^\s+● (.+)$`)
	jestCount   = lazyregexp.New(`^Tests:\s+(\d+) failed`)
	tapName     = lazyregexp.New(`^ *not ok \d+\s*-?\s*(.*)$`)
)

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
	case strings.HasPrefix(text, "FAILED "):
		if m := pytestName().FindStringSubmatch(text); m != nil {
			n.add(m[1])
		}
	case strings.HasPrefix(text, "ERROR "), strings.HasPrefix(text, "error: could not compile"),
		strings.HasPrefix(text, "panic: "), strings.Contains(text, "● Test suite failed to run"):
		n.isPartial = true
	case strings.HasPrefix(strings.TrimLeft(text, " "), "not ok "):
		if m := tapName().FindStringSubmatch(text); m != nil && !strings.Contains(m[1], "# TODO") {
			n.add(m[1])
			n.expected++
		}
	case strings.HasPrefix(text, "error: test failed, to rerun"), strings.HasPrefix(text, "!!!"):
		n.isStopped = n.isStopped || text[0] == 'e' || strings.Contains(text, "stopping after")
	default:
		n.other(text)
	}
}

// other takes a line of cargo, jest, or the last one of pytest.
func (n *names) other(text string) {
	if m := cargoTarget().FindStringSubmatch(text); m != nil {
		n.target = m[1]
	} else if m := cargoName().FindStringSubmatch(text); m != nil {
		n.add(n.target + " " + m[1])
	} else if m := jestName().FindStringSubmatch(text); m != nil {
		n.add(m[1])
	} else if m := firstOf(text, cargoCount().FindStringSubmatch, jestCount().FindStringSubmatch); m != nil {
		n.count(m[1])
	} else if m := pytestCount().FindStringSubmatch(text); m != nil && m[1] != "" {
		n.count(m[1])
		n.isPartial = n.isPartial || strings.Contains(text, " error")
	}
}

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

// add adds a name. jest names its failures twice.
func (n *names) add(name string) {
	if n.found == nil {
		n.found = map[string]bool{}
	}
	if !n.found[name] {
		n.found[name] = true
		n.counted++
	}
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

// goEvent takes a line of go test -json.
func (n *names) goEvent(raw []byte) {
	var e struct{ Action, Package, Test string }
	if json.Unmarshal(raw, &e) != nil || e.Action != "fail" {
		return
	}
	if e.Test == "" {
		n.isPartial = n.isPartial || !n.goFailed[e.Package]
		return
	}
	if n.goFailed == nil {
		n.goFailed = map[string]bool{}
	}
	n.goFailed[e.Package] = true
	n.add(e.Package + "." + e.Test)
	n.expected++
}

// Names returns the names of all tests that have failed, sorted. isComplete is false where the output does not tell all
// of them, or where something else than a test has failed. It is called after Failures.
func (f *Finder) Names() (all []string, isComplete bool) {
	n := &f.names
	for name := range n.found {
		all = append(all, name)
	}
	slices.Sort(all)
	hasOther := slices.ContainsFunc(f.all, func(x Failure) bool {
		return x.Name == "" && (!x.isVague || x.Place != "")
	})
	return all, len(all) > 0 && !n.isPartial && !hasOther && len(n.open) == 0 && n.counted == n.expected
}

// IsStopped reports whether a runner says that it has not run all tests because one has failed, as cargo does, and
// pytest with -x. It is called after Failures.
func (f *Finder) IsStopped() bool { return f.names.isStopped }
