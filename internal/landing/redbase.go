package landing

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster/internal/check"
	"muster/internal/lazyregexp"
)

// While the base is red, work lands although its check is red, because it may not be to blame. It is to blame for what
// fails on it and does not fail on the tip. So the result is compared with what the check has said of the tip: each of
// several checks by itself, and test by test where the output names them all. Where it did not name them for the tip,
// nothing can be compared, and the work lands.

// addedFailures returns what fails in the result of a check and did not fail on the tip. The caller has the slot.
func (c *checker) addedFailures(ctx context.Context, tip string, res CheckResult) (added []string, err error) {
	if c.options.Receipts == "" {
		return nil, nil
	}
	said, err := c.runner.Said(ctx, tip)
	isMissing := func(now CheckResult) bool {
		_, ok := said[now.Name]
		return !ok && !now.Advisory && !now.Green
	}
	if err == nil && slices.ContainsFunc(res.Each(), isMissing) {
		// The environment may be another one than that of the process that has checked the tip.
		if _, err = c.classifyBase(ctx); err == nil {
			said, err = c.runner.Said(ctx, tip)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, now := range res.Each() {
		was, ok := said[now.Name]
		switch {
		case now.Advisory || now.Green || !ok:
		case was.Green:
			added = append(added, cmp.Or(now.Name, "the check"))
		case was.NamesKnown && !now.NamesKnown:
			// Something else than a test has failed: nothing was built, or the tests have ended before their time.
			added = append(added, "more than a test: "+cmp.Or(now.Failed, now.How))
		case was.NamesKnown:
			added = append(added, addedTests(was, now)...)
		}
	}
	return added, nil
}

// addedTests returns the tests that fail in a result and did not fail on the tip. A part of a test that failed there as
// a whole is left out.
func addedTests(was check.Receipt, now CheckResult) (added []string) {
	// Where a failure ends a check, the tests that come later have not run on the tip. They are told from those that
	// the work has broken by where they are: what is beside a test that failed did run.
	stillFails := func(old string) bool { return slices.Contains(now.FailedTests, old) }
	runsMore := was.Stopped || strings.Contains(now.Command, "&&")
	runsMore = runsMore && !slices.ContainsFunc(was.FailedTests, stillFails)
	for _, name := range now.FailedTests {
		isOld := func(old string) bool { return name == old || strings.HasPrefix(name, old+"/") }
		isBeside := func(old string) bool { return testScope(name) == testScope(old) }
		if slices.ContainsFunc(was.FailedTests, isOld) || runsMore && !slices.ContainsFunc(was.FailedTests, isBeside) {
			continue
		}
		added = append(added, name)
	}
	return added
}

// testName finds where a test is by its name: the package, file or program.
var testName = lazyregexp.New(`^(?:(.*)\.(?:Test|Example|Fuzz|Benchmark)[^.]*(?:/.*)?|(\S+?)::.*|(\S+) .*)$`)

// testScope returns where a test is, "" where its name does not say that.
func testScope(name string) string {
	if m := testName().FindStringSubmatch(name); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
