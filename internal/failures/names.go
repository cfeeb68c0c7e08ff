package failures

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster/internal/lazyregexp"
)

// The names are for comparing two checks: on a base where tests fail already, work may land as long as no other test
// fails. So a name must be the same each time, whatever the order in which tests run, and a list that may lack one is
// worse than none. It is complete if each runner has named as many failures as it has counted. go test names a package
// after its tests, and counts none: one whose tests did not end is not named. A runner that names two tests alike is
// taken for one that has not named all.

// names collects the names of all tests that have failed, of which a Finder keeps only as many as people read.
//
// Invariant: where isPartial is false and counted is expected, a test that has failed and is not in found was not run
// by one of the runners that formats has.
type names struct {
	found     map[string]bool
	told      map[string]bool // the names, each with the kind of line that told it: runners repeat their lines
	expected  int             // how many failures the runners have counted
	counted   int             // how many of those were named
	isPartial bool            // something has failed that has no name
	isStopped bool            // the runner says that it has left out the tests that come after a failure

	scope   string   // what stands before the names that come next: a file of jest, a program of cargo
	goTests []string // tests of Go of which the package comes later
}

// failedCount matches how many tests have failed, in a line that counts them.
var failedCount = lazyregexp.New(`\b(\d+) (?:failed|errors?|timed out|exec failed)\b`)

// take takes what a line tells.
func (n *names) take(x *format, line string, at []int) {
	name := string(x.match().ExpandString(nil, cmp.Or(x.full, "${name}"), line, at))
	switch scope := x.group(line, at, "scope"); x.tells {
	case aTest:
		n.add(x.has, name)
	case aScopedTest:
		if n.scope != "" {
			n.add(x.has, n.scope+name)
		}
	case aScope:
		n.scope = name
	case aCount:
		for _, m := range failedCount().FindAllStringSubmatch(line, -1) {
			number, err := strconv.Atoi(m[1])
			n.expected += number
			n.isPartial = n.isPartial || err != nil
		}
		n.isStopped = n.isStopped || scope != ""
	case aGoTest:
		n.goTests = append(n.goTests, name)
	case aGoPackage:
		n.isPartial = n.isPartial || len(n.goTests) == 0 // it was not built, or has ended by itself
		for _, test := range n.goTests {
			n.addCounted(scope + "." + test)
		}
		n.goTests = nil
	case aGoSuccess:
		n.goTests = nil // what a passing test has printed
	case aTAPTest:
		n.addCounted(name)
	case aLoss:
		n.isPartial = true
	case aStop, noStop:
		n.isStopped = x.tells == aStop
	}
}

// add adds a name that a kind of line has told.
func (n *names) add(kind, name string) {
	if n.found == nil {
		n.found, n.told = map[string]bool{}, map[string]bool{}
	}
	n.found[name] = true
	if key := kind + name; !n.told[key] {
		n.told[key] = true
		n.counted++
	}
}

// addCounted adds a name of a runner that does not count its failures.
func (n *names) addCounted(name string) {
	n.add("", name)
	n.expected++
}

// Names returns the names of all tests that have failed, sorted. isComplete is false where the output and the reports
// do not tell all of them, or where something else than a test has failed. A test that both tell may have a name of
// each. It is called after Failures.
func (f *Finder) Names() (all []string, isComplete bool) {
	n := &f.names
	found := maps.Clone(n.found)
	if found == nil {
		found = map[string]bool{}
	}
	maps.Copy(found, f.report.names)
	all = slices.Sorted(maps.Keys(found))
	hasOther := slices.ContainsFunc(f.all, func(x Failure) bool { return x.Name == "" })
	// A console that does not name each failure that it counts is no harm where the reports have that many, and one
	// that names no packages of Go is none where a report names them.
	isTold := n.counted == n.expected || f.report.failed >= n.expected
	for _, test := range n.goTests {
		isOfPackage := func(name string) bool { return strings.HasSuffix(name, "."+test) }
		isTold = isTold && slices.ContainsFunc(all, isOfPackage)
	}
	return all, len(all) > 0 && isTold && !n.isPartial && !f.report.isPartial && !hasOther
}

// IsStopped reports whether a runner says that it has not run all tests because one has failed, as cargo does, and
// pytest with -x. It is called after Failures.
func (f *Finder) IsStopped() bool { return f.names.isStopped }
