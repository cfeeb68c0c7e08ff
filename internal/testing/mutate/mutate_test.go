package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

const most = 3

func f(a []int, ok bool) (int, error) {
	n, err := g()
	if err != nil {
		return 0, err
	}
	if ok && n > 0 {
		n += a[0]
		count++
	}
	slog.Info("counted", "all", true)
	failpoint.Hit("counted")
	reset(func() error { return fail("no", n == 1) })
	if !ok {
		return n, fmt.Errorf("f is %v", n == 2)
	}
	n, err = g()
	return n, nil
}
`

func TestMutantsOfASmallFile(t *testing.T) {
	found, err := mutate("sample.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, fmt.Sprintf("%d: %s", m.line, m.what))
		if bytes.Equal(m.source, []byte(sample)) {
			t.Errorf("line %d is as it was: %s", m.line, m.what)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", m.source, 0); err != nil {
			t.Errorf("line %d, %s: %v", m.line, m.what, err)
		}
	}
	want := []string{
		`8: err  ->  nil`,
		`10: 0  ->  1`,
		`10: n > 0  ->  n >= 0`,
		`10: ok && n > 0  ->  !(ok && n > 0)`,
		`10: ok && n > 0  ->  ok || n > 0`,
		`11: 0  ->  1`,
		`11: n += a[0]  ->  _ = a[0]`,
		`12: count++  ->  {}`,
		`16: 1  ->  2`,
		`16: fail("no", n == 1)  ->  nil`,
		`16: n == 1  ->  n != 1`,
		`16: reset(func() error { return fail("no", n == 1) })  ->  {}`,
		`17: !ok  ->  !(!ok)`,
		`18: fmt.Errorf("f is %v", n == 2)  ->  nil`,
		`20: n, err = g()  ->  _, _ = g()`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The package has four mutants: one does not compile, and the test kills two of the others. The files stay as they are.
func TestASurvivorIsReported(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.24\n",
		"sample.go": `package sample

import "strings"

// Long reports whether a name is long.
func Long(name string) bool { return len(name) > 10 }

// Trim does more than its test looks at.
func Trim(name *string) { *name = strings.TrimSpace(*name) }

// Clear has a mutant that does not compile, since it would not use i.
func Clear(names []string) {
	for i := range names {
		names[i] = ""
	}
}
`,
		"sample_test.go": `package sample

import "testing"

func TestLong(t *testing.T) {
	if Long("0123456789") || !Long("0123456789a") {
		t.Error("wrong")
	}
	Trim(new(string))
	Clear(nil)
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	enough, err := run(t.Context(), options{perPackage: 10, seed: 1, min: 60, workers: 2}, []string{"."}, &out)
	if err != nil || !enough {
		t.Errorf("two of three are 60%%: %v, %v", enough, err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"survived sample.go:9 *name = strings.TrimSpace(*name) -> _ = strings.TrimSpace(*name)", "",
		"package tried killed survived not built percent", "sample 3 2 1 1 67%", "total 3 2 1 1 67%"}
	if !slices.Equal(lines, want) {
		t.Errorf("it said\n%s", out.String())
	}
	scores := []score{{tried: 3, killed: 2}, {tried: 1, killed: 1}}
	if table(&out, scores, 76) || !table(&out, scores, 75) {
		t.Error("three of four are 75%")
	}
	text, err := os.ReadFile("sample.go")
	if err != nil || !strings.Contains(string(text), "> 10") {
		t.Errorf("the source is not as it was: %v", err)
	}
}

// Another package's tests kill what the package's own let through, and are given the mutant too.
func TestTheTestsOfAnotherPackageCount(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module sample\n\ngo 1.24\n",
		"low/low.go":    "package low\n\n// IsLong says so.\nfunc IsLong(name string) bool { return len(name) > 10 }\n",
		"low/a_test.go": "package low\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n",
		"high/a_test.go": "package high\n\nimport (\n\t\"testing\"\n\n\t\"sample/low\"\n)\n\n" +
			"func TestLong(t *testing.T) {\n\tif low.IsLong(\"0123456789\") || !low.IsLong(\"0123456789a\") {\n" +
			"\t\tt.Error(\"wrong\")\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		also []string
		want bool
	}{{nil, false}, {[]string{"./high"}, true}} {
		var out bytes.Buffer
		o := options{perPackage: 2, seed: 1, min: 100, workers: 1, also: c.also}
		enough, err := run(t.Context(), o, []string{"./low"}, &out)
		if err != nil || enough != c.want {
			t.Errorf("with the tests of %v: %v, %v\n%s", c.also, enough, err, out.String())
		}
	}
}
