package failures_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"muster/internal/failures"
)

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
		"pytest":       {"FAILED t/test_a.py::test_x[a b] - assert 1\nFAILED t/test_a.py::test_y\n===== 2 failed, 1 passed in 0.03s =====\n", []string{"t/test_a.py::test_x[a b]", "t/test_a.py::test_y"}, true},
		"pytest, cut":  {"FAILED t/test_a.py::test_x - a\n==== 2 failed, 1 passed in 0.03s ====\n", []string{"t/test_a.py::test_x"}, false},
		"pytest error": {"FAILED t/a.py::x\nERROR t/b.py - E\n==== 1 failed, 1 error in 0.03s ====\n", []string{"t/a.py::x"}, false},
		"cargo": {"     Running unittests src/lib.rs (target/debug/deps/m-1f)\ntest tests::bad ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n",
			[]string{"m:src/lib.rs tests::bad"}, true},
		"jest":      {"  ● sum › adds\n\n  ● sum › adds\nTests:       1 failed, 2 passed, 3 total\n", []string{"sum › adds"}, true},
		"jest, not": {"  ● Test suite failed to run\n  ● a\nTests:       1 failed, 3 total\n", []string{"a"}, false},
		"tap":       {"not ok 1 - adds\nok 2 - b\nnot ok 3 - later # TODO\n1..3\n", []string{"adds"}, true},
	} {
		var f failures.Finder
		_, _ = f.Write([]byte(c.output))
		f.Failures()
		if got, known := f.Names(); !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%s: %q %v", name, got, known)
		}
	}
}

// What real runners print is known as well.
func TestNamesInRealOutput(t *testing.T) {
	for name, want := range map[string]bool{"go": false, "gojson": true, "jest": true, "nodetap": true} {
		data, err := os.ReadFile("testdata/" + name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		var f failures.Finder
		_, _ = f.Write(data)
		f.Failures()
		if all, known := f.Names(); known != want || len(all) == 0 {
			t.Errorf("%s: %v: %q", name, known, all)
		}
	}
}
