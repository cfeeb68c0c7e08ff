package failures

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// goEvent is a line of go test -json. The tests of packages, and those of one package, are mixed with one another.
type goEvent struct{ Action, Package, Test, Output string }

// newGoEvent returns the event that a line is, if it is one.
func newGoEvent(line []byte) (e goEvent, ok bool) {
	ok = bytes.HasPrefix(line, []byte(`{"`)) && json.Unmarshal(line, &e) == nil && e.Action != ""
	return e, ok
}

// goPackage is a package of which go test -json tells.
type goPackage struct {
	hasFailed bool                // a test in it has
	running   map[string][]string // what the tests have printed that have not ended
}

// goEvent takes an event. What a test has printed is taken when the test has failed.
func (f *Finder) goEvent(e goEvent) {
	if f.packages == nil {
		f.packages = map[string]*goPackage{}
	}
	p := f.packages[e.Package]
	if p == nil {
		p = &goPackage{running: map[string][]string{}}
		f.packages[e.Package] = p
	}
	lines := p.running[e.Test]
	f.ran.isAny = f.ran.isAny || e.Test != ""
	switch isOfTest := e.Test != ""; {
	case e.Action == "run":
		p.running[e.Test] = nil
	case strings.HasSuffix(e.Action, "output") && !isOfTest: // or build-output
		f.line(strings.TrimRight(e.Output, "\n"), false)
	case e.Action == "output" && len(lines) < maxBlock:
		p.running[e.Test] = append(lines, strings.TrimRight(e.Output, "\n"))
	case e.Action == "pass" || e.Action == "skip" || e.Action == "bench":
		delete(p.running, e.Test)
	case e.Action == "fail" && isOfTest:
		delete(p.running, e.Test)
		p.hasFailed = true
		f.names.addCounted(e.Package + "." + e.Test)
		f.goLines(lines, 0)
	case e.Action == "fail":
		// It was not built, or has ended before its time: the tests that come later have not run.
		f.names.isPartial = f.names.isPartial || !p.hasFailed || len(p.running) > 0
		for _, test := range slices.Sorted(maps.Keys(p.running)) {
			if at := slices.IndexFunc(p.running[test], isPanic); at >= 0 {
				f.goLines(p.running[test], at)
			}
		}
	}
}

// goLines takes what a test that has failed has printed, from one of its lines on.
func (f *Finder) goLines(lines []string, from int) {
	f.names.isPartial = f.names.isPartial || slices.ContainsFunc(lines, isPanic)
	for _, line := range lines[from:] {
		f.line(line, false)
	}
	f.open = nil
}

// isPanic reports whether a line tells of a panic that has ended the program.
func isPanic(line string) bool { return strings.HasPrefix(line, "panic: ") }
