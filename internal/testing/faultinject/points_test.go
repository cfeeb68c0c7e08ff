package faultinject_test

import (
	"bytes"
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

	"muster/internal/testing/faultinject"
	"muster/internal/testing/require"
)

// inCode returns the failpoints that the code has: whole names, and the steps of files.
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
			if !ok || fmt.Sprint(s.X) != "failpoint" || s.Sel.Name != "Hit" && s.Sel.Name != "HitFile" {
				return true
			}
			arg, ok := call.Args[len(call.Args)-1].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the point is no literal", files.Position(call.Pos()))
				return true
			}
			name, _ := strconv.Unquote(arg.Value)
			if s.Sel.Name == "Hit" {
				names = append(names, name)
			} else {
				steps = append(steps, name)
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	return names, steps
}

// TestPointsAreListed checks that the code has the points of the list and no others.
func TestPointsAreListed(t *testing.T) {
	names, steps := inCode(t)
	if len(names) < 20 || len(steps) < 10 {
		t.Fatalf("only %d points and %d steps found: the test looks at the wrong place", len(names), len(steps))
	}
	listed := map[string]bool{}
	for _, p := range faultinject.Points() {
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
		if !slices.ContainsFunc(faultinject.Points(), func(p faultinject.Point) bool { return strings.HasSuffix(p.Name, "."+s) }) {
			t.Errorf("the code has the step %s, the list does not", s)
		}
	}
}

// TestPointsAreDocumented checks that docs/reliability.md has every point.
func TestPointsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reliability.md")
	require.NoError(t, err)
	for _, l := range faultinject.Lines() {
		if !strings.Contains(string(text), l) {
			t.Errorf("docs/reliability.md lacks the line %q", l)
		}
	}
}

// TestCommandsNameTests checks that each `go test PACKAGE -run NAME` of docs/reliability.md, and each `-run NAME` after it,
// names a test that exists. A test that needs failpoints exists only where the command has the build tag.
func TestCommandsNameTests(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reliability.md")
	require.NoError(t, err)
	named, dir, hasTag := 0, "", false
	command := regexp.MustCompile("`(?:(?:MUSTER_TESTS=all )?go test (-tags failpoint )?(\\./\\S+)[^`]*?)?-run '?([^'` /]+)[^`]*`")
	for _, m := range command.FindAllStringSubmatch(string(text), -1) {
		if m[2] != "" {
			hasTag, dir = m[1] != "", m[2]
		}
		files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
		require.NoError(t, err)
		wanted, found := regexp.MustCompile(m[3]), false
		for _, f := range files {
			code, err := os.ReadFile(f)
			require.NoError(t, err)
			if bytes.HasPrefix(code, []byte("//go:build failpoint\n")) && !hasTag {
				continue
			}
			for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
				found = found || wanted.Match(test[1])
			}
		}
		if named++; !found {
			t.Errorf("%s has no test %s", dir, m[3])
		}
	}
	if named < 20 {
		t.Errorf("only %d commands found: the test looks for the wrong thing", named)
	}
}
