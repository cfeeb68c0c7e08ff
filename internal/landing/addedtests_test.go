package landing

import (
	"strings"
	"testing"

	"muster/internal/check"
)

// A failing test of which another part fails is not a new one on a red base, nor is one that had not run on the tip.
func TestTestsThatAreNewOnARedBase(t *testing.T) {
	t.Parallel()
	const one, all = "go test ./...", "go test ./a && go test ./b"
	for _, c := range []struct {
		command  string
		stopped  bool // by its first failure
		was, now string
		added    string
	}{
		{one, false, "m/a.TestA/b", "m/a.TestA/c", "m/a.TestA/c"},
		{one, false, "m/a.TestA m/a.TestA/b", "m/a.TestA m/a.TestA/c", ""},
		{one, false, "m/a.TestA", "m/a.TestA m/a.TestA/c", ""},
		{one, false, "m/a.TestA", "m/a.TestA m/a.TestAB", "m/a.TestAB"},
		{one, false, "m/a.TestA m/a.TestB", "m/b.TestA m/a.TestB", "m/b.TestA"},
		{one, false, "m/a.TestA", "m/b.TestC", "m/b.TestC"},
		{one, true, "m/a.TestA", "m/b.TestC", ""},
		{all, false, "m/a.TestA", "m/b.TestC", ""},
		{all, false, "m/a.TestA", "m/a.TestC", "m/a.TestC"}, // which ran beside what was mended
		{all, false, "m/a.TestA", "m/a.TestA m/b.TestC", "m/b.TestC"},
		{one, true, "t/a.py::test_a", "t/b.py::test_c t/a.py::test_c", "t/a.py::test_c"},
	} {
		was, now := check.Receipt{FailedTests: strings.Fields(c.was), Stopped: c.stopped}, CheckResult{Command: c.command}
		now.FailedTests = strings.Fields(c.now)
		if got := strings.Join(addedTests(was, now), " "); got != c.added {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
