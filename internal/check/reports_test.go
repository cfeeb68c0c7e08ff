package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// reportOf is a report of JUnit with a test that has failed, in single quotes for the shell.
func reportOf(test string) string {
	return `'<testsuites><testsuite name="s"><testcase classname="a.A" name="` + test +
		`"><failure message="it is wrong">at a.A.x(A.java:7)</failure></testcase></testsuite></testsuites>'`
}

// The reports that a check has written where runners write them name its failed tests, and others do not.
func TestReportsOfACheck(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "junit.xml"), []byte(strings.Trim(reportOf("outside"), "'")), 0o600))
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
		"printed":             {"echo " + reportOf("x"), "x", true},
		"elsewhere":           {"mkdir -p src; echo " + reportOf("x") + " > src/page.xml", "", false},
		"old":                 {"echo " + reportOf("x") + " > junit.xml; touch -d 2001-01-01 junit.xml", "", false},
		"of the commit":       {"cat reports/junit-old.xml", "old", true}, // it is printed
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
