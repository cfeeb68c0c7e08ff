package landing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/check"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/journal"
)

// withReceipts keeps what checks say.
func withReceipts(dir string) func(*landing.Options) {
	return func(o *landing.Options) { o.Receipts = dir }
}

// runners print what a test runner says of the failing tests, which are the words of the file failing.
var runners = map[string]string{
	"go": `for t in $(cat failing); do echo "--- FAIL: Test$t (0.00s)"; echo "    a_test.go:7: no"; done
echo FAIL; printf 'FAIL\tm/a\t0.01s\nok  \tm/b\t0.01s\nFAIL\n'`,
	"junit": `mkdir -p build/test-results/test; { echo '<testsuite name="m.A" failures="'$(cat failing | wc -w)'">'
for t in $(cat failing); do echo '<testcase classname="m.A" name="'$t'"><failure message="no">A.java:7</failure></testcase>'; done
echo '<testcase classname="m.A" name="good"/></testsuite>'; } > build/test-results/test/TEST-m.A.xml; echo 'There were failing tests.'`,
	"pytest and junit": `{ echo '<testsuites><testsuite name="pytest">'
for t in $(cat failing); do echo '<testcase classname="t.test_a" name="test_'$t'"><failure message="no"/></testcase>'; done
echo '</testsuite></testsuites>'; } > report.xml
for t in $(cat failing); do echo "FAILED t/test_a.py::test_$t - assert 0"; done
echo "=== $(cat failing | wc -w) failed, 1 passed in 0.02s ==="`,
}

// redBase is a repository whose base has the failing tests A and B, by a runner's output.
func redBase(t *testing.T, output string) *world {
	t.Helper()
	receipts := t.TempDir()
	w := newWorld(t, "test -e dies && { echo 'Segmentation fault'; exit 139; }; test -s failing || exit 0; "+output+"; exit 1",
		map[string]string{"failing": "A B\n", "a.txt": "a\n"}, withReceipts(receipts))
	w.must(fault(w.land.CheckBase(w.ctx())))
	equal(t, "the base", w.state, landing.BaseRed)
	return w
}

// On a red base a landing may not add a failing test, however the tests are named.
func TestARedBaseMayNotGetWorse(t *testing.T) {
	t.Parallel()
	for name, output := range runners {
		t.Run(name, func(t *testing.T) {
			if name != "go" && name != "junit" {
				tier.All(t)
			}
			t.Parallel()
			w := redBase(t, output)
			same, _ := w.task("Same", "alice", map[string]string{"same": "1\n"})
			if v := w.lands(same); v.Task.Landed.Receipt != muster.ReceiptStillRed || v.Task.Landed.Flaky {
				t.Errorf("%+v", v.Task.Landed)
			}
			worse, lane := w.task("Worse", "bob", map[string]string{"failing": "A B C\n"})
			v := w.back(worse)
			first := strings.SplitN(v.Text, "Mend that.", 2)[0]
			if !strings.Contains(first, "more fails") || !strings.Contains(first, "C.") || strings.Contains(first, "A,") ||
				!strings.Contains(v.Text, "failed before your work") {
				t.Errorf("%s", v.Text)
			}
			// It is the new one too when an old one was mended instead.
			w.write(lane, map[string]string{"failing": "B C\n"})
			says(t, w.back(v.Task).Text, "more fails")
			w.write(lane, map[string]string{"failing": "B\n"})
			equal(t, "the receipt", w.lands(v.Task).Task.Landed.Receipt, muster.ReceiptStillRed)
			// What was mended may not fail again.
			again, _ := w.task("Again", "carol", map[string]string{"failing": "A B\n"})
			says(t, w.back(again).Text, "more fails")
			dies, _ := w.task("Dies", "dave", map[string]string{"dies": "1\n"})
			says(t, w.back(dies).Text, "more than a test: exit 139")
			all, lane := w.task("All", "erin", nil)
			require.NoError(t, os.Truncate(filepath.Join(lane, "failing"), 0))
			equal(t, "the receipt", w.lands(all).Task.Landed.Receipt, muster.ReceiptGreen)
			equal(t, "the state", w.state, landing.BaseGreen)
		})
	}
}

// A check that names no test, on the tip or at all, is compared as a whole: what is red may stay red.
func TestARedBaseWithoutNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "cat failing; exit 1", map[string]string{"failing": "dead\n"}, withReceipts(t.TempDir()))
	for i, text := range []string{"still dead\n", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n"} {
		task, _ := w.task(fmt.Sprint(i), "alice", map[string]string{"failing": text})
		equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptStillRed)
	}
}

// A test that fails by chance on a red base is nobody's fault: the check runs once more on the same tree.
func TestATestThatFailsByChanceOnARedBase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, `test -e first && mkdir `+dir+`/once 2>/dev/null && echo C >> failing; `+runners["go"]+`; exit 1`,
		map[string]string{"failing": "A\n"}, withReceipts(t.TempDir()))
	task, _ := w.task("First", "alice", map[string]string{"first": "1\n"})
	if v := w.lands(task); v.Task.Landed.Receipt != muster.ReceiptStillRed || v.Task.Rounds != 0 {
		t.Errorf("%+v", v.Task)
	}
	w.must(fault(os.Stat(filepath.Join(dir, "once"))))
	equal(t, "notes", len(w.said(journal.RunNote, "text", "failed once, and not on the same tree again: ")), 1)
	// It failed on this tree, so the next one is not to blame for it.
	next, _ := w.task("Next", "bob", map[string]string{"failing": "A C\n"})
	w.lands(next)
}

// A receipt that somebody has written, or of another command, is not what the check has said of the tip.
func TestAForgedReceiptOnARedBase(t *testing.T) {
	t.Parallel()
	receipts := t.TempDir()
	command := "test -s failing || exit 0; " + runners["go"] + "; exit 1"
	w := newWorld(t, command, map[string]string{"failing": "A\n"}, withReceipts(receipts))
	require.NoError(t, fault(w.land.CheckBase(w.ctx())))
	for _, x := range check.Receipts(receipts) {
		path := filepath.Join(receipts, x.Key+".json")
		text := strings.Replace(gittest.Read(t, receipts, x.Key+".json"), `"tree": "`, `"tree": "0`, 1)
		text = strings.Replace(text, "m/a.TestA", "m/a.TestC", 1)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	worse, _ := w.task("Worse", "bob", map[string]string{"failing": "A C\n"})
	says(t, w.back(worse).Text, "more fails: m/a.TestC.")
}
