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
		"jest":          {"  ● sum › adds\n\n  ● sum › adds\nTests:       1 failed, 2 passed, 3 total\n", []string{"sum › adds"}, true},
		"jest, not":     {"  ● Test suite failed to run\n  ● a\nTests:       1 failed, 3 total\n", []string{"a"}, false},
		"pytest, setup": {"FAILED t/a.py::x - a\nERROR t/a.py::x - b\nERROR t/b.py::y - b\n1 failed, 2 errors in 61.03s (0:01:01)\n", []string{"t/a.py::x", "t/b.py::y"}, true},
		"pytest, log":   {"ERROR    root:a.py:3 no\nFAILED t/a.py::x - a\n==== 1 failed, 2 xfailed in 0.03s ====\n", []string{"t/a.py::x"}, true},
		"pytest -q":     {"FAILED t/a.py::x\n1 failed in 0.03s\n", []string{"t/a.py::x"}, true},
		"vitest, file":  {" FAIL  a.test.ts > x\n FAIL  b.test.ts [ b.test.ts ]\n      Tests  1 failed (1)\n", []string{"a.test.ts::x"}, false},
		"vitest, cut":   {" FAIL  |web| a.test.ts > x\n      Tests  2 failed (2)\n", []string{"a.test.ts::x"}, false},
		"nextest, stop": {" Nextest run ID 1\n     Summary [   0.1s] 1/3 tests run: 0 passed, 1 failed, 0 skipped\n        FAIL [   0.1s] m a\n", []string{"m a"}, true},
		"cargo, abort": {"     Running unittests src/lib.rs (target/debug/deps/m-1f)\ntest a ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n" +
			"  process didn't exit successfully: `x` (signal: 6, SIGABRT)\n", []string{"m:src/lib.rs a"}, false},
		"tap, odd":      {"TAP version 14\nnot ok\nnot ok 2\nnot ok 3 - a \\# TODO b\nNOT ok 4\nnot ok 5 - c # Skip d\nnot ok 6 - e # time=3ms\n", []string{"a \\# TODO b", "e", "test ", "test 2"}, true},
		"tap, bail out": {"not ok 1 - a\nBail out! no database\n", []string{"a"}, false},
		"tap, parts": {"# Subtest: a\n    # Subtest: b\n        not ok 1 - c\n    not ok 1 - b # TODO\n    not ok 2 - c\nnot ok 1 - a\n# Subtest: d\n    not ok 1 - c\nnot ok 2 - d\n",
			[]string{"a", "a > c", "d", "d > c"}, true},
		"go -json, dead": {`{"Action":"run","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"run","Package":"m","Test":"TestB"}` + "\n" +
			`{"Action":"fail","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n", []string{"m.TestA"}, false},
		"tap": {"not ok 1 - adds\nok 2 - b\nnot ok 3 - later # TODO\n1..3\n", []string{"adds"}, true},
	} {
		var f failures.Finder
		_, _ = f.Write([]byte(c.output))
		f.Failures()
		if got, known := f.Names(); !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%s: %q %v", name, got, known)
		}
	}
}

// What runners print as a whole is known as well.
func TestNamesInWholeOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want    []string // nil: not given here
		known   bool
		stopped bool
	}{
		"go": {nil, false, false}, "gojson": {nil, true, false}, "jest": {nil, true, false}, "nodetap": {nil, true, false},
		"vitest":      {[]string{"js/v.spec.ts::v sums > breaks here"}, true, false},
		"nextest":     {[]string{"shop cart::tests::total", "shop::orders big_order"}, true, false},
		"cargomany":   {[]string{"orders:tests/orders.rs empty_order - should panic", "shop shop/src/lib.rs - total (line 3)", "shop:src/lib.rs tests::rounds", "tax:src/lib.rs tests::rounds"}, true, false},
		"bats":        {[]string{"refuses a bad flag"}, true, false},
		"prove":       {[]string{"a total", "bills", "bills > two"}, true, false},
		"xdist":       {[]string{"tests/test_cart.py::test_total[[a]]", "tests/test_cart.py::test_total[two items - one free]", "tests/test_order.py::TestOrder::test_send"}, true, false},
		"jestmany":    {[]string{"packages/cart/cart.test.js::cart › works", "packages/order/order.test.js::cart › works"}, true, false},
		"gojsonpanic": {[]string{"shop/cart.TestTotal", "shop/cart.TestTotal/three", "shop/cart.TestTotal/two"}, false, false},
	} {
		data, err := os.ReadFile("testdata/" + name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		var f failures.Finder
		_, _ = f.Write(data)
		f.Failures()
		all, known := f.Names()
		if known != c.known || len(all) == 0 || c.want != nil && !slices.Equal(all, c.want) || f.IsStopped() != c.stopped {
			t.Errorf("%s: %v, stopped %v: %q", name, known, f.IsStopped(), all)
		}
	}
}
