package torture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"muster/internal/testing/failpoint"
	"muster/internal/testing/torture"
)

// inCode are the points that the code has: whole names, and the steps of files.
func inCode(t *testing.T) (names, steps []string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fmt.Sprint(s.X) != "failpoint" || s.Sel.Name != "Point" && s.Sel.Name != "File" {
				return true
			}
			arg, ok := call.Args[len(call.Args)-1].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the point is no literal", files.Position(call.Pos()))
				return true
			}
			name, _ := strconv.Unquote(arg.Value)
			if s.Sel.Name == "Point" {
				names = append(names, name)
			} else {
				steps = append(steps, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, steps
}

// TestPointsAreListed: the code has the points of the list and no others.
func TestPointsAreListed(t *testing.T) {
	names, steps := inCode(t)
	if len(names) < 20 || len(steps) < 10 {
		t.Fatalf("only %d points and %d steps found: the test looks at the wrong place", len(names), len(steps))
	}
	listed := map[string]bool{}
	for _, p := range failpoint.Points() {
		if p.Durable == "" {
			t.Errorf("%s does not say what is durable by then", p.Name)
		}
		listed[p.Name] = true
		_, step, _ := strings.Cut(p.Name, ".")
		if !slices.Contains(names, p.Name) && !slices.Contains(steps, step) {
			t.Errorf("the list has %s, the code does not", p.Name)
		}
	}
	for _, n := range names {
		if !listed[n] {
			t.Errorf("the code has the point %s, the list does not", n)
		}
	}
	for _, s := range steps {
		if !slices.ContainsFunc(failpoint.Points(), func(p failpoint.Named) bool { return strings.HasSuffix(p.Name, "."+s) }) {
			t.Errorf("the code has the step %s, the list does not", s)
		}
	}
}

// TestPointsAreDocumented: docs/reliability.md has every point.
func TestPointsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range failpoint.Lines() {
		if !strings.Contains(string(text), l) {
			t.Errorf("docs/reliability.md lacks the line %q", l)
		}
	}
}

// TestScenarios is the short form of muster torture: nothing is lost, doubled or stuck, and it passes every point of the list and
// no others.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	list := filepath.Join(t.TempDir(), "points")
	if err := failpoint.ArmWith("list:"+list, ""); err != nil { // what the torture itself passes
		t.Fatal(err)
	}
	t.Cleanup(failpoint.Disarm)
	for _, r := range session(t, torture.Config{Seed: 3, List: list}) {
		for _, v := range r.Violations {
			t.Error(v)
		}
		if r.Bad() {
			t.Errorf("%s: lost %d, doubled %d, stuck %d", r.Scenario, r.Lost, r.Doubled, r.Stuck)
		}
	}
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	passed := map[string]bool{}
	for name := range strings.FieldsSeq(string(data)) {
		passed[name] = true
		if !failpoint.Known(name) {
			t.Errorf("the point %s was passed, and is not on the list", name)
		}
	}
	for _, p := range failpoint.Points() {
		if !passed[p.Name] {
			t.Errorf("the point %s is never passed", p.Name)
		}
	}
}

// TestCommandsNameTests: each `go test PACKAGE -run NAME` of docs/reliability.md, and each `-run NAME` after it, names a test
// that is there.
func TestCommandsNameTests(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	named, dir := 0, ""
	for _, m := range regexp.MustCompile("`(?:go test (\\./\\S+)[^`]*?)?-run '?([^'` /]+)[^`]*`").FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			dir = m[1]
		}
		files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		wanted, found := regexp.MustCompile(m[2]), false
		for _, f := range files {
			code, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
				found = found || wanted.Match(test[1])
			}
		}
		if named++; !found {
			t.Errorf("%s has no test %s", dir, m[2])
		}
	}
	if named < 20 {
		t.Errorf("only %d commands found: the test looks for the wrong thing", named)
	}
}
