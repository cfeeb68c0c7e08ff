package failures

import (
	"strings"
	"testing"
)

func TestCurrent(t *testing.T) {
	for line, want := range map[string]string{
		"=== RUN   TestCount/empty":                          "TestCount/empty",
		"=== CONT  TestLock":                                 "TestLock",
		"    --- PASS: TestCount/empty (0.00s)":              "TestCount/empty",
		"ok  \tmuster/internal/view\t0.024s":                 "muster/internal/view",
		"FAIL\tmuster/internal/cli [build failed]":           "muster/internal/cli",
		"?   \tmuster/cmd\t[no test files]":                  "muster/cmd",
		`{"Action":"run","Package":"a/b","Test":"TestOne"}`:  "TestOne",
		`{"Action":"pass","Package":"a/b","Elapsed":0.1}`:    "a/b",
		`{"Action":"output","Package":"a/b","Output":"x\n"}`: "",
		"tests/test_a.py::test_one[x-1] PASSED      [ 33%]":  "tests/test_a.py::test_one[x-1]",
		"tests/test_a.py ..F.                       [ 40%]":  "tests/test_a.py",
		"test parse::tests::empty ... ok":                    "parse::tests::empty",
		"test slow - should panic ... ok\r":                  "slow",
		"PASS src/sum.test.ts (5.1 s)":                       "src/sum.test.ts",
		"  ✓ adds two numbers (3 ms)":                        "adds two numbers",
		" ✓ src/sum.test.ts 12ms":                            "src/sum.test.ts",
		"not ok 7 - closes the file":                         "closes the file",
		"FAIL":                                               "",
		"all is ok 7":                                        "",
		"":                                                   "",
		"{not json":                                          "",
		"a.go:12: error":                                     "",
	} {
		if got := Current(line); got != want {
			t.Errorf("%q is about %q, want %q", line, got, want)
		}
	}
}

// A report that no program that runs tests would write is cut off, and does not fill the memory.
func TestAReportWithoutBounds(t *testing.T) {
	const some = `<testsuite><testcase name="a"><failure/></testcase>`
	for name, inner := range map[string]string{
		"deep": strings.Repeat("<a>", 200) + strings.Repeat("</a>", 200),
		"long": strings.Repeat("<a/>", 600_000),
	} {
		text := some + inner + "</testsuite>"
		var f Finder
		if !f.Report([]byte(text)) || !f.report.isPartial {
			t.Errorf("%s: %+v", name, f.report)
		}
	}
}
