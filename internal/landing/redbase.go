package landing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster/internal/check"
	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// While the base is red, work lands although its check is red, because it may not be to blame. It is to blame for what
// fails on it and does not fail on the tip. So the result is compared with what the check has said of the tip: each of
// several checks by itself, and test by test where the output names them all. Where it did not name them for the tip,
// nothing can be compared, and the work lands.

// addedFailures returns what fails in the result of a check of a commit, and did not fail on the tip that it is on. The
// caller has the slot.
func addedFailures(ctx context.Context, l *Lander, tip, commit string, res CheckResult) (added []string, err error) {
	if l.options.Receipts == "" {
		return nil, nil
	}
	said, err := l.runner.Said(ctx, tip)
	isMissing := func(c CheckResult) bool {
		_, ok := said[c.Name]
		return !ok && !c.Advisory && !c.Green
	}
	if err == nil && slices.ContainsFunc(res.Each(), isMissing) {
		// The environment may be another one than that of the process that has checked the tip.
		if _, err = l.classifyBase(ctx); err == nil {
			said, err = l.runner.Said(ctx, tip)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, c := range res.Each() {
		was, ok := said[c.Name]
		switch {
		case c.Advisory || c.Green || !ok:
		case was.Green:
			added = append(added, cmp.Or(c.Name, "the check"))
		case was.NamesKnown && !c.NamesKnown:
			// Something else than a test has failed: nothing was built, or the tests have ended before their time.
			added = append(added, "more than a test: "+cmp.Or(c.Failed, c.How))
		case was.NamesKnown:
			names, err := addedTests(ctx, l, tip, commit, was, c)
			if err != nil {
				return nil, err
			}
			added = append(added, names...)
		}
	}
	return added, nil
}

// addedTests returns the tests that fail in a result and did not fail on the tip. Two kinds are left out: a part of a
// test that failed there as a whole, and a test that has moved and failed under its old name.
func addedTests(
	ctx context.Context, l *Lander, tip, commit string, was check.Receipt, now CheckResult,
) (added []string, err error) {
	added, gone := compareTests(was.FailedTests, now.FailedTests)
	// Where a failure ends a check, the tests that come later have not run on the tip. They are told from those that
	// the work has broken by where they are: what is beside a test that failed did run.
	if len(gone) == len(was.FailedTests) && (was.Stopped || strings.Contains(now.Command, "&&")) {
		added = slices.DeleteFunc(added, func(name string) bool {
			isBeside := func(old string) bool { return testScope(old) == testScope(name) }
			return !slices.ContainsFunc(gone, isBeside)
		})
	}
	var left []string
	for _, name := range added {
		short := shortTest(name)
		old := slices.IndexFunc(gone, func(old string) bool { return shortTest(old) == short })
		if old >= 0 {
			isMoved, err := hasMoved(ctx, l, tip, commit, short)
			if err != nil {
				return nil, err
			}
			if isMoved {
				gone = slices.Delete(gone, old, old+1)
				continue
			}
		}
		left = append(left, name)
	}
	return left, nil
}

// The names alone do not say everything. A test that is called another way is one failure less and one more, and so
// is a test that was mended together with one that was broken. The first is told from the second by git: whoever
// moves a test takes its name out of one file and puts it into another one. What is not certain counts as added: its
// owner reads why the work came back, and whoever comes later would not know that it was ever green.

// compareTests returns the tests that fail now and did not fail before, and those that failed before and do not now.
func compareTests(before, now []string) (added, gone []string) {
	for _, name := range now {
		if !slices.Contains(before, name) && !isPartOfOne(name, before) {
			added = append(added, name)
		}
	}
	for _, name := range before {
		if !slices.Contains(now, name) {
			gone = append(gone, name)
		}
	}
	return added, gone
}

// isPartOfOne reports whether a test is a part of one of the tests, as go test names them.
func isPartOfOne(name string, tests []string) bool {
	return slices.ContainsFunc(tests, func(t string) bool { return strings.HasPrefix(name, t+"/") })
}

// testName takes the name of a test apart: the package, file or program that it is in, and what it is called there.
var testName = lazyregexp.New(`^(?:(.*)\.((?:Test|Example|Fuzz|Benchmark)[^.]*(?:/.*)?)|(\S+?)::(.*)|(\S+) (.*))$`)

// testScope returns where a test is, "" where its name does not say that.
func testScope(name string) string {
	if m := testName().FindStringSubmatch(name); m != nil {
		return m[1] + m[3] + m[5]
	}
	return ""
}

// shortTest returns what a test is called where it is.
func shortTest(name string) string {
	if m := testName().FindStringSubmatch(name); m != nil {
		return m[2] + m[4] + m[6]
	}
	return name
}

// hasMoved reports whether a commit has taken a test out of one file and put it into another one.
func hasMoved(ctx context.Context, l *Lander, tip, commit, test string) (bool, error) {
	if end := strings.IndexAny(test, "/[("); end >= 0 {
		test = test[:end]
	}
	words := identifiers().FindAllString(test, -1)
	if len(words) == 0 {
		return false, nil
	}
	pattern := "(^|[^A-Za-z0-9_])" + words[len(words)-1] + "([^A-Za-z0-9_]|$)"
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), "diff", "--no-renames", "--name-only", "-z", "-G"+pattern,
		tip, commit, "--")
	if err != nil {
		return false, unavailable(ctx, "git cannot compare what is to land with the target", err)
	}
	return strings.Count(out, "\x00") > 1, nil
}

// identifiers matches the words of a test's name without its parameters.
var identifiers = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*`)

// addedText is for an owner whose work makes a red base worse: what is theirs to mend, and what is not.
func addedText(branch string, res CheckResult) string {
	if len(res.Added) == 0 {
		return ""
	}
	return fmt.Sprintf("The check is red on %s too, but with your work more fails: %s. Mend that. What else is named "+
		"below failed before your work, and need not be mended for this task.\n", branch,
		text.List(res.Added, maxFiles))
}
