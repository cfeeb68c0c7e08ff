package failures_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/failures"
	"muster/internal/testing/require"
)

var update = flag.Bool("update", false, "write what is found into the .want files")

// Each file of testdata is what a program printed, with what is to be found in it beside it, whatever its line ends are.
func TestFind(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) < 15 {
		t.Fatalf("only %d logs: %v", len(logs), err)
	}
	for _, log := range logs {
		data := string(require.Value(os.ReadFile(log))(t))
		got := ""
		for _, text := range []string{data, strings.ReplaceAll(data, "\n", "\r\n")} {
			var f failures.Finder
			for part := range slices.Chunk([]byte(text), 7) {
				_, _ = f.Write(part)
			}
			found := failures.Lines(f.Failures(), 10_000)
			names, isComplete := f.Names()
			found += fmt.Sprintf("names, complete %v, stopped %v: %q\n", isComplete, f.IsStopped(), names)
			if got != "" && got != found {
				t.Errorf("%s with CRLF:\n%s\nnot\n%s", log, found, got)
			}
			got = found
		}
		name := strings.TrimSuffix(log, ".log") + ".want"
		if *update {
			require.NoError(t, os.WriteFile(name, []byte(got), 0o600))
		}
		if want, err := os.ReadFile(name); err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s\nnot\n%s", log, err, got, want)
		}
	}
}

// Output of any kind is taken, and what is kept of it is bounded.
func TestAnyOutput(t *testing.T) {
	logs, _ := filepath.Glob("testdata/*.log")
	rapid.Check(t, func(t *rapid.T) {
		data := require.Value(os.ReadFile(rapid.SampledFrom(logs).Draw(t, "log")))(t)
		var f failures.Finder
		for range rapid.IntRange(1, 200).Draw(t, "parts") {
			at := rapid.IntRange(0, len(data)).Draw(t, "at")
			_, _ = f.Write(data[at:min(len(data), at+rapid.IntRange(0, 500).Draw(t, "size"))])
			_, _ = f.Write(rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "noise"))
		}
		found := f.Failures()
		if text := failures.Lines(found, 1000); len(found) > 50 || len(text) > 1100 {
			t.Fatalf("%d failures in %d bytes", len(found), len(text))
		}
	})
	var f failures.Finder
	for range 1000 {
		_, _ = f.Write([]byte(strings.Repeat("--- FAIL: ", 1000)))
	}
	if found := f.Failures(); len(failures.Lines(found, 5000)) > 5000 {
		t.Error(found)
	}
}

// The names of all failed tests are found, also where nobody would read that many; and it is known where some are
// missing.
func TestNames(t *testing.T) {
	many, manyNames := "", []string(nil)
	for i := range 200 {
		many += fmt.Sprintf("--- FAIL: Test%03d (0.00s)\n", i)
		manyNames = append(manyNames, fmt.Sprintf("m.Test%03d", i))
	}
	for name, c := range map[string]struct {
		output string
		want   []string
		known  bool
	}{
		"nothing":          {"no test here\n", nil, false},
		"go":               {"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\nFAIL\tm/x\t0.1s\nok  \tm/y\t0.1s\nFAIL\n", []string{"m/x.TestA", "m/x.TestA/b"}, true},
		"many":             {many + "FAIL\nFAIL\tm\t0.1s\n", manyNames, true},
		"go, build failed": {"--- FAIL: TestA (0.00s)\nFAIL\tm/x\t0.1s\nFAIL\tm/y [build failed]\n", []string{"m/x.TestA"}, false},
		"go, compiler":     {"# m/y\ny.go:3:2: undefined: x\n--- FAIL: TestA (0.00s)\nFAIL\tm/x\t0.1s\n", []string{"m/x.TestA"}, false},
		"go, panic":        {"--- FAIL: TestA (0.00s)\npanic: no\nFAIL\tm/x\t0.1s\n", []string{"m/x.TestA"}, false},
		"go, cut":          {"--- FAIL: TestA (0.00s)\n", nil, false},
		"go -json":         {`{"Action":"fail","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n", []string{"m.TestA"}, true},
		"go -json, no test": {`{"Action":"fail","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"n"}` + "\n",
			[]string{"m.TestA"}, false},
		"go -json, dead": {`{"Action":"run","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"run","Package":"m","Test":"TestB"}` + "\n" +
			`{"Action":"fail","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n", []string{"m.TestA"}, false},
		"pytest":        {"FAILED t/test_a.py::test_x[a b] - assert 1\nFAILED t/test_a.py::test_y\n===== 2 failed, 1 passed in 0.03s =====\n", []string{"t/test_a.py::test_x[a b]", "t/test_a.py::test_y"}, true},
		"pytest, cut":   {"FAILED t/test_a.py::test_x - a\n==== 2 failed, 1 passed in 0.03s ====\n", []string{"t/test_a.py::test_x"}, false},
		"pytest, file":  {"FAILED t/a.py::x\nERROR t/b.py - E\n==== 1 failed, 1 error in 0.03s ====\n", []string{"t/a.py::x", "t/b.py"}, true},
		"pytest, setup": {"FAILED t/a.py::x - a\nERROR t/a.py::x - b\nERROR t/b.py::y - b\n1 failed, 2 errors in 61.03s (0:01:01)\n", []string{"t/a.py::x", "t/b.py::y"}, true},
		"pytest, log":   {"ERROR    root:a.py:3 no\nFAILED t/a.py::x - a\n==== 1 failed, 2 xfailed in 0.03s ====\n", []string{"t/a.py::x"}, true},
		"cargo, abort": {"     Running unittests src/lib.rs (target/debug/deps/m-1f)\ntest a ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n" +
			"  process didn't exit successfully: `x` (signal: 6, SIGABRT)\n", []string{"m:src/lib.rs a"}, false},
		"cargo, 101": {"     Running unittests src/lib.rs (target/debug/deps/m-1f)\ntest a ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n" +
			"  process didn't exit successfully: `x` (exit status: 101)\n", []string{"m:src/lib.rs a"}, true},
		"cargo, printed by a test": {"test a ... FAILED\n", nil, false},
		"nextest, stop":            {"     Summary [   0.1s] 1/3 tests run: 0 passed, 1 failed, 0 skipped\n        FAIL [   0.1s] m a\n", []string{"m a"}, true},
		"jest":                     {"FAIL a.test.js\n  ● sum › adds\n\n  ● Console\n  ● sum › adds\nTests:       1 failed, 2 passed, 3 total\n", []string{"a.test.js::sum › adds"}, true},
		"jest, not":                {"FAIL a.test.js\n  ● Test suite failed to run\n  ● a\nTests:       1 failed, 3 total\n", []string{"a.test.js::a"}, false},
		"vitest, file":             {" FAIL  a.test.ts > x\n FAIL  b.test.ts [ b.test.ts ]\n      Tests  1 failed (1)\n", []string{"a.test.ts::x"}, false},
		"vitest, cut":              {" FAIL  |web| a.test.ts > x\n      Tests  2 failed (2)\n", []string{"a.test.ts::x"}, false},
		"tap":                      {"not ok 1 - adds\nok 2 - b\nnot ok 3 - later # TODO\nnot ok 4 - 2 and 2 # time=3ms\nnot ok 5 - a \\# TODO b\nNOT ok 6\n1..6\n", []string{"2 and 2", "a \\# TODO b", "adds"}, true},
		"tap, no name":             {"not ok 1 - a\nnot ok 2\n", []string{"a"}, false},
		"tap, bail out":            {"not ok 1 - a\nBail out! no database\n", []string{"a"}, false},
		"tap, alike": {"# Subtest: a\n    # Subtest: b\n        not ok 1 - c\n    not ok 1 - b\n    not ok 2 - c\nnot ok 1 - a\n# Subtest: d\n    not ok 1 - c\nnot ok 2 - d\n",
			[]string{"a", "b", "c", "d"}, false},
	} {
		var f failures.Finder
		_, _ = f.Write([]byte(c.output))
		f.Failures()
		if got, known := f.Names(); !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%s: %q %v", name, got, known)
		}
	}
}

// surefire is a report as Maven writes it: an error, a failure with a run after it, one that passed in the end, one
// that was left out.
const surefire = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="3.0" name="com.acme.CalcTest" time="0.1" tests="5" errors="1" skipped="1" failures="1">
  <properties><property name="failure" value="no"/></properties>
  <testcase name="adds" classname="com.acme.CalcTest" time="0.01">
    <failure message="expected: &lt;3&gt; but was: &lt;4&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[org.opentest4j.AssertionFailedError: expected: <3> but was: <4>
	at org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:38)
	at com.acme.CalcTest.adds(CalcTest.java:12)
]]></failure>
    <rerunFailure message="expected: 3" type="x"><stackTrace>at com.acme.CalcTest.adds(CalcTest.java:99)</stackTrace></rerunFailure>
    <system-out><![CDATA[<failure>not this</failure>]]></system-out>
  </testcase>
  <testcase name="divides(int)[1]" classname="com.acme.CalcTest"><error type="java.lang.ArithmeticException">java.lang.ArithmeticException: / by zero
	at com.acme.Calc.divide(Calc.java:7)</error></testcase>
  <testcase name="sometimes" classname="com.acme.CalcTest"><flakyFailure message="no" type="x"/></testcase>
  <testcase name="later" classname="com.acme.CalcTest"><skipped message="not now"/></testcase>
  <testcase name="subtracts" classname="com.acme.CalcTest"/>
</testsuite>
`

// pytestReport is one as pytest writes it.
const pytestReport = `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="2" skipped="1" tests="4">` +
	`<testcase classname="t.test_a.TestC" name="test_x[a b]" time="0.1"><failure message="assert 1 == 2">def test_x():&#10;E   assert 1 == 2&#10;&#10;t/test_a.py:7: AssertionError</failure></testcase>` +
	`<testcase classname="t.test_a" name="test_y"><failure message="E">t/test_a.py:9: E</failure></testcase>` +
	`<testcase classname="" name="t.test_b"><error message="collection failure">ImportError</error></testcase>` +
	`<testcase classname="t.test_a" name="test_z"><skipped type="pytest.xfail" message=""/></testcase></testsuite></testsuites>`

// The failed tests of reports are named, and it is known where some are missing.
func TestReports(t *testing.T) {
	t.Parallel()
	suite := func(attributes, inner string) string {
		return "<testsuites><testsuite " + attributes + ">" + inner + "</testsuite></testsuites>"
	}
	red := func(class, name string) string {
		return fmt.Sprintf(`<testcase classname="%s" name="%s"><failure message="no"/></testcase>`, class, name)
	}
	for name, c := range map[string]struct {
		console string
		reports []string
		want    []string
		known   bool
	}{
		"surefire":   {"", []string{surefire}, []string{"com.acme.CalcTest::adds", "com.acme.CalcTest::divides(int)[1]"}, true},
		"several":    {"", []string{suite("", red("a.A", "x")), suite("", red("b.B", "y")), suite("", `<testcase name="z"/>`)}, []string{"a.A::x", "b.B::y"}, true},
		"twice":      {"", []string{suite("", red("a.A", "x")), suite("", red("a.A", "x"))}, []string{"a.A::x"}, true},
		"rows":       {"", []string{suite(`failures="2"`, red("a.A", "x")+red("a.A", "x"))}, []string{"a.A::x"}, true},
		"nested":     {"", []string{`<testsuite name="all" failures="1"><testsuite name="sum" failures="1">` + red("test", "adds") + "</testsuite></testsuite>"}, []string{"all > sum::adds"}, true},
		"count":      {"", []string{suite(`failures="2"`, red("a.A", "x"))}, []string{"a.A::x"}, false},
		"cut":        {"", []string{surefire[:900]}, []string{"com.acme.CalcTest::adds"}, false},
		"in a suite": {"", []string{suite(`name="a.A" errors="1"`, `<error message="no class"/>`)}, nil, false},
		"no name":    {"", []string{suite("", red("a.A", ""))}, []string{"a.A"}, true},
		"go":         {"", []string{suite(`name="m/a"`, red("m/a", "TestA/b_c"))}, []string{"m/a.TestA/b_c"}, true},
		"other xml":  {"", []string{`<coverage><testcase><failure/></testcase></coverage>`, "", "junk"}, nil, false},
		"to do":      {"", []string{suite("", `<testcase name="z"><skipped type="todo"/><failure/></testcase>`+red("a.A", "x"))}, []string{"a.A::x"}, true},
		"green":      {"", []string{suite("", `<testcase name="z"/>`)}, nil, false},
		"entities":   {"", []string{`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>` + suite("", red("a.A", "x")+red("a.A", "&b;"))}, []string{"a.A::&b;", "a.A::x"}, true},
		"broken":     {"", []string{suite("", red("a.A", "x")+"<testcase name=y>a < b</testcase>"+red("a.A", "z"))}, nil, false},
		"control":    {"", []string{suite("", red("a.A", "x&#27;[1m\x1b\xff"))}, []string{"a.A::x?[1m??"}, true},
		"charset":    {"", []string{`<?xml version="1.0" encoding="windows-1252"?>` + suite("", red("a.A", "x"))}, []string{"a.A::x"}, true},
		// The console and the report say the same in other words.
		"pytest twice": {"FAILED t/test_a.py::TestC::test_x[a b] - assert\nFAILED t/test_a.py::test_y - E\nERROR t/test_b.py\n=== 2 failed, 1 error in 0.1s ===\n",
			[]string{pytestReport}, []string{"t.test_a.TestC::test_x[a b]", "t.test_a::test_y", "t.test_b",
				"t/test_a.py::TestC::test_x[a b]", "t/test_a.py::test_y", "t/test_b.py"}, true},
		"gotestsum":    {"--- FAIL: TestA (0.00s)\n", []string{suite("", red("m/a", "TestA"))}, []string{"m/a.TestA"}, true},
		"jest twice":   {"FAIL a.test.js\n  ● sum › adds\n\nTests:       1 failed, 2 total\n", []string{suite("", red("sum adds", "sum adds"))}, []string{"a.test.js::sum › adds", "sum adds"}, true},
		"two runners":  {"--- FAIL: TestA (0.00s)\nFAIL\tm/a\t0.1s\n", []string{pytestReport}, []string{"m/a.TestA", "t.test_a.TestC::test_x[a b]", "t.test_a::test_y", "t.test_b"}, true},
		"only counted": {"=== 2 failed, 1 error in 0.1s ===\n", []string{pytestReport}, []string{"t.test_a.TestC::test_x[a b]", "t.test_a::test_y", "t.test_b"}, true},
		"not built":    {"--- FAIL: TestA (0.00s)\nFAIL\tm/a\t0.1s\nFAIL\tm/b [build failed]\n", []string{suite("", red("m/a", "TestA"))}, []string{"m/a.TestA"}, false},
	} {
		var f failures.Finder
		for part := range slices.Chunk([]byte(c.console), 7) {
			_, _ = f.Write(part)
		}
		for _, r := range c.reports {
			f.Report([]byte(r))
		}
		f.Failures()
		if got, known := f.Names(); !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%s: %q %v", name, got, known)
		}
	}
}

// People read where a test is and what it says, once.
func TestReportsForPeople(t *testing.T) {
	t.Parallel()
	var f failures.Finder
	_, _ = f.Write([]byte("FAILED t/test_a.py::test_y - assert 2\n"))
	f.Report([]byte(surefire))
	f.Report([]byte(pytestReport))
	const want = `- t/test_a.py::test_y
    assert 2
- com.acme.CalcTest::adds (CalcTest.java:12)
    expected: <3> but was: <4>
- com.acme.CalcTest::divides(int)[1] (Calc.java:7)
    java.lang.ArithmeticException: / by zero
- t.test_a.TestC::test_x[a b] (t/test_a.py:7)
    assert 1 == 2
- t.test_b
    collection failure
`
	if got := failures.Lines(f.Failures(), 10_000); got != want {
		t.Errorf("%s", got)
	}
}

// A report of any content is read without harm.
func TestAnyReport(t *testing.T) {
	t.Parallel()
	parts := []string{"<testsuite>", "</testsuite>", `<testcase name="a">`, "</testcase>", "<failure>", "</failure>", "<error/>",
		"<testsuites", " failures=\"9\">", "<![CDATA[", "]]>", "&lt;", "&#1;", "&x;", "<!DOCTYPE a [", "\n", "\x00", "ab"}
	rapid.Check(t, func(t *rapid.T) {
		text := "<testsuite>" + strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		var f failures.Finder
		f.Report([]byte(text))
		f.Failures()
		f.Names()
	})
	var f failures.Finder
	f.Report([]byte("<testsuite><failure><testcase></testcase>text behind a case in the failure of a suite"))
	f.Report([]byte(strings.Repeat("<testsuite>", 100_000)))
	f.Report([]byte("<testsuite>" + strings.Repeat(`<testcase name="`+strings.Repeat("n", 10_000)+`"><failure message="`+
		strings.Repeat("m", 10_000)+`"/></testcase>`, 50) + "</testsuite>"))
	if found := f.Failures(); len(failures.Lines(found, 5000)) > 5000 {
		t.Error("too long")
	}
	if names, known := f.Names(); len(names) != 1 || len(names[0]) > 600 || known {
		t.Errorf("%d names", len(names))
	}
}
