package failures_test

import (
	"testing"

	"muster/internal/failures"
)

func TestRanNone(t *testing.T) {
	for output, want := range map[string]string{
		// What runners print that have found no test.
		"\n----\nRan 0 tests in 0.000s\n\nOK\n":                                              "Ran 0 tests in 0.000s",
		"Ran 0 tests in 0.000s\n\nNO TESTS RAN\n":                                            "Ran 0 tests in 0.000s",
		"Found 0 test(s).\nSystem check identified no issues\n":                              "Found 0 test(s).",
		"collected 0 items\n\n===== no tests ran in 0.01s =====\n":                           "collected 0 items",
		"no tests ran in 0.01s\n":                                                            "no tests ran in 0.01s",
		"?   \texample.org/a\t[no test files]\n":                                             "? example.org/a [no test files]",
		"ok  \texample.org/a\t0.002s [no tests to run]\n":                                    "ok example.org/a 0.002s [no tests to run]",
		"     Running unittests\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n": "running 0 tests",
		"No tests found, exiting with code 0\n":                                              "No tests found, exiting with code 0",
		"\x1b[33mNo test files found, exiting with code 0\x1b[39m\n":                         "No test files found, exiting with code 0",
		"\n\n  0 passing (1ms)\n\n":                                                          "0 passing (1ms)",
		"ℹ tests 0\nℹ suites 0\nℹ pass 0\n":                                                  "ℹ tests 0",
		"TAP version 13\n1..0\n":                                                             "1..0",
		"> Task :testClasses UP-TO-DATE\n> Task :test NO-SOURCE\nBUILD SUCCESSFUL\n":         "> Task :test NO-SOURCE",
		"[INFO] No tests to run.\n":                                                          "[INFO] No tests to run.",
		"[INFO] Tests run: 0, Failures: 0, Errors: 0\n":                                      "[INFO] Tests run: 0, Failures: 0, Errors: 0",
		"No test is available in /x/bin/a.dll. Make sure\n":                                  "No test is available in /x/bin/a.dll. Make sure",
		"No tests were found!!!\n":                                                           "No tests were found!!!",
		"No examples found.\n\n0 examples, 0 failures\n":                                     "No examples found.",
		"No tests executed!\n":                                                               "No tests executed!",
		"0 runs, 0 assertions, 0 failures\n":                                                 "0 runs, 0 assertions, 0 failures",
		"Executed 0 tests, with 0 failures\n":                                                "Executed 0 tests, with 0 failures",
		// A test has run somewhere.
		"Ran 3 tests in 0.001s\n\nOK\n":                                                  "",
		"Ran 0 tests in 0.000s\nOK\n....\nRan 3 tests in 0.001s\nOK\n":                   "",
		"?   \ta\t[no test files]\nok  \tb\t0.002s\n":                                    "",
		"?   \ta\t[no test files]\nok  \tb\t(cached)\n":                                  "",
		"?   \ta\t[no test files]\nok  \tb\t0.1s\tcoverage: 1% of statements\n":          "",
		"running 0 tests\n\nrunning 2 tests\ntest a ... ok\n":                            "",
		"running 0 tests\ntest result: ok. 10 passed; 0 failed\n":                        "",
		"collected 3 items\n\n== 3 passed in 0.1s ==\n":                                  "",
		"Tests:       3 passed, 3 total\n1..0\n":                                         "",
		"  2 passing (3ms)\n  0 passing\n":                                               "",
		"# tests 3\n# tests 0\n":                                                         "",
		"> Task :a:test NO-SOURCE\n> Task :b:test\n":                                     "",
		"> Task :a:test NO-SOURCE\n> Task :b:test UP-TO-DATE\n":                          "",
		"[INFO] No tests to run.\n[INFO] Tests run: 4, Failures: 0\n":                    "",
		"100% tests passed, 0 tests failed out of 3\nNo tests were found!!!\n":           "",
		"3 examples, 0 failures\n0 examples, 0 failures\n":                               "",
		"OK (3 tests, 3 assertions)\nNo tests executed!\n":                               "",
		`{"Action":"run","Package":"p","Test":"TestA"}` + "\n?   \ta\t[no test files]\n": "",
		// Words that are no runner's.
		"all good\n":                  "",
		"the log says: Ran 0 tests\n": "",
	} {
		var f failures.Finder
		_, _ = f.Write([]byte(output))
		f.Failures()
		if got := f.RanNone(); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
