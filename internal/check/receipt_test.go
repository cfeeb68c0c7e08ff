package check_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/check"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// A green receipt is not earned twice, by whichever process; a red one is never used.
func TestAGreenReceiptIsNotEarnedTwice(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, threeFiles), t.TempDir()
	runs, receipts := filepath.Join(dir, "runs"), filepath.Join(dir, "receipts")
	count := func() int {
		data, _ := os.ReadFile(runs)
		return strings.Count(string(data), "run\n")
	}
	for _, c := range []struct {
		name    string
		command string
		before  func()
		env     string
		green   bool
		cached  bool
	}{
		{name: "first", command: "true", green: true},
		{name: "again", command: "true", green: true, cached: true},
		{name: "another command", command: "true #", green: true},
		{name: "another environment", command: "true", env: "CI=1", green: true},
		{name: "another terminal", command: "true", env: "TERM=vt100", green: true, cached: true},
		{name: "red", command: "test -e " + dir + "/ok", green: false},
		{name: "red again", command: "test -e " + dir + "/ok", green: false},
		{name: "red and then green", command: "test -e " + dir + "/ok", green: true, before: func() {
			gittest.Write(t, dir, map[string]string{"ok": ""})
		}},
		{name: "another commit of the tree", command: "true", green: true, cached: true, before: func() {
			w.git("commit", "-q", "--allow-empty", "-m", "Same")
		}},
		{name: "flaky is kept", command: "true", green: true, cached: true, before: func() {
			if n := len(slices.DeleteFunc(check.Receipts(receipts), func(x check.Receipt) bool { return !x.Flaky })); n != 1 {
				t.Errorf("%d receipts are flaky", n)
			}
		}},
		{name: "a damaged one", command: "true", green: true, before: func() {
			for _, x := range check.Receipts(receipts) {
				require.NoError(t, os.WriteFile(filepath.Join(receipts, x.Key+".json"), []byte(`{"green":true}`), 0o600))
			}
		}},
		{name: "another tree", command: "true", green: true, before: func() {
			gittest.Write(t, w.root, map[string]string{"a.txt": "other\n"})
			w.git("commit", "-qam", "Other")
		}},
	} {
		if c.before != nil {
			c.before()
		}
		before := count()
		res := w.head(w.runner("echo run >> "+runs+"; "+c.command, func(o *check.Options) {
			o.Receipts = receipts
			if c.env != "" {
				o.Environ = proc.WithVariables(o.Environ, c.env)
			}
		}))
		if ran := count() > before; res.Green != c.green || res.Cached != c.cached || ran == c.cached || res.Log == "" {
			t.Errorf("%s: %+v, ran %v", c.name, res, ran)
		}
	}
}

// Where a hook decides after the check, it sees the files also when the check need not run again.
func TestAHookSeesTheFilesOfAKnownTree(t *testing.T) {
	t.Parallel()
	w, receipts := newWorld(t, threeFiles), t.TempDir()
	for _, cached := range []bool{false, true} {
		seen := ""
		res, err := w.runner("true", func(o *check.Options) { o.Receipts = receipts }).Run(t.Context(),
			check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"}, func(_ context.Context, dir string, _ []string, res *check.Result, _ io.Writer) error {
				seen = gittest.Read(t, dir, "a.txt")
				return nil
			})
		if err != nil || !res.Green || res.Cached != cached || seen != "a\n" {
			t.Errorf("%+v, %v, the hook saw %q", res, err, seen)
		}
	}
}

// reportOf is a report of JUnit with a test that has failed, in single quotes for the shell.
func reportOf(test string) string {
	return `'<testsuites><testsuite name="s"><testcase classname="a.A" name="` + test +
		`"><failure message="it is wrong">at a.A.x(A.java:7)</failure></testcase></testsuite></testsuites>'`
}

// The reports that a check has written where runners write them name its failed tests, and others do not.
func TestReportsOfACheck(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "junit.xml"), []byte(strings.Trim(reportOf("outside"), "'")), 0o600))
	w := newWorld(t, map[string]string{"reports/junit-old.xml": strings.Trim(reportOf("old"), "'") + "\n"})
	for name, c := range map[string]struct {
		command string
		want    string // the tests; "" where none is known
		known   bool
	}{
		"root":            {"echo " + reportOf("x") + " > junit.xml", "x", true},
		"any in the root": {"echo " + reportOf("x") + " > out.xml", "x", true},
		"deep":            {"mkdir -p m/target/surefire-reports; echo " + reportOf("x") + " > m/target/surefire-reports/TEST-a.A.xml", "x", true},
		"several": {"mkdir -p test-results/a m/TestResults; echo " + reportOf("x") + " > test-results/a/1.xml; echo " +
			reportOf("y") + " > m/TestResults/2.xml", "x y", true},
		"printed":             {"echo " + reportOf("x"), "", false},
		"elsewhere":           {"mkdir -p src; echo " + reportOf("x") + " > src/page.xml", "", false},
		"old":                 {"echo " + reportOf("x") + " > junit.xml; touch -d 2001-01-01 junit.xml", "", false},
		"unchanged":           {"true", "", false},
		"a link":              {"ln -s '" + outside + "/junit.xml' junit.xml; ln -s '" + outside + "' reports2", "", false},
		"a directory as link": {"rm -r reports; ln -s '" + outside + "' reports", "", false},
		"a pipe":              {"mkfifo junit.xml", "", false},
		"too large": {"(echo " + reportOf("x") + " | head -c 150; head -c 17000000 /dev/zero | tr '\\0' x; echo '\"/></testcase>') > junit.xml; echo " +
			reportOf("y") + " > report.xml", "x y", false},
		"large, no report": {"(echo '<coverage>'; head -c 17000000 /dev/zero) > junit.xml; echo " + reportOf("y") + " > report.xml", "y", true},
		"cut":              {"echo " + reportOf("x") + " | head -c 150 > junit.xml", "x", false},
		"killed":           {"echo " + reportOf("x") + " > junit.xml; kill -9 $$", "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "large") {
				tier.All(t)
			}
			res := w.head(w.runner(c.command + "; exit 1"))
			var want []string
			for _, x := range strings.Fields(c.want) {
				want = append(want, "a.A::"+x)
			}
			if res.Green || !slices.Equal(res.FailedTests, want) || res.NamesKnown != c.known {
				t.Errorf("%q %v, green %v", res.FailedTests, res.NamesKnown, res.Green)
			}
			if c.known && (!strings.Contains(res.Failed, " (A.java:7)") || !strings.Contains(res.Output, "it is wrong")) {
				t.Errorf("%q\n%s", res.Failed, res.Output)
			}
		})
	}
}

// A report of an earlier check in the same slot is none of the next one.
func TestAReportOfAnEarlierCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a.txt": "a\n"})
	cache := t.TempDir()
	if res := w.head(w.runner("echo "+reportOf("x")+" > junit.xml; exit 1", kept(cache))); len(res.FailedTests) != 1 {
		t.Fatalf("%+v", res)
	}
	if res := w.head(w.runner("test -e a.txt && exit 1", kept(cache))); res.FailedTests != nil || res.NamesKnown {
		t.Errorf("%+v", res)
	}
	// A report in the commit that the check writes again counts.
	gittest.Write(t, w.root, map[string]string{"junit.xml": "<testsuites/>\n"})
	w.git("add", "-A")
	w.git("commit", "-qm", "report")
	if res := w.head(w.runner("sleep 0.1; echo "+reportOf("x")+" > junit.xml; exit 1", kept(cache))); len(res.FailedTests) != 1 {
		t.Errorf("%+v", res)
	}
}
