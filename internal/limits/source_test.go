package limits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// source is one parsed Go file.
type source struct {
	path   string // relative to the module, with slashes
	pkg    string // the directory of path
	test   bool   // it is compiled for tests only
	text   []byte
	fset   *token.FileSet
	syntax *ast.File
}

// sources returns all Go files of the module, for every operating system, sorted by path.
func sources(t *testing.T) (all []source) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name != ".." && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := parse(path, filepath.ToSlash(rel))
		all = append(all, s)
		return err
	})
	require.NoError(t, err)
	if len(all) < 300 {
		t.Fatalf("only %d files found: the test looks at the wrong place", len(all))
	}
	return all
}

// parse reads one file.
func parse(path, rel string) (source, error) {
	s := source{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go")}
	var err error
	if s.text, err = os.ReadFile(path); err != nil {
		return s, err
	}
	s.fset = token.NewFileSet()
	s.syntax, err = parser.ParseFile(s.fset, rel, s.text, parser.ParseComments)
	return s, err
}

// sleeps returns the places of the calls of time.Sleep in a file, except in functions that use a name for which inBubble
// holds, and in those that have the word synctest in their comment.
func (s source) sleeps(inBubble func(name string) bool) (places []token.Position) {
	for _, d := range s.syntax.Decls {
		f, _ := d.(*ast.FuncDecl)
		if f != nil && (strings.Contains(f.Doc.Text(), "synctest") || uses(f, inBubble)) {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" && usesName(sel.X, "time") {
				places = append(places, s.fset.Position(n.Pos()))
			}
			return true
		})
	}
	return places
}

// usesName reports whether a name occurs in n.
func usesName(n ast.Node, name string) bool { return uses(n, func(s string) bool { return s == name }) }

// uses reports whether a name for which match holds occurs in n.
func uses(n ast.Node, match func(name string) bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && match(id.Name) {
			found = true
		}
		return !found
	})
	return found
}
