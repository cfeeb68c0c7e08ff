package limits

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is one parsed Go file.
type source struct {
	path   string // relative to the module, with slashes
	pkg    string // the directory of path
	test   bool   // it is compiled for tests only
	linked bool   // cmd/muster links its package, and test is false
	text   []byte
	fset   *token.FileSet
	syntax *ast.File
	counts
}

// counts are the lines of a file by kind. A line with both code and a comment counts as code. Blank lines count as
// neither.
type counts struct{ code, comments int }

// sources returns all Go files of the module, for every operating system, sorted by path. linked
// are the directories of the packages that cmd/muster links.
func sources(t *testing.T, linked map[string]bool) (all []source) {
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
		s.linked = linked[s.pkg] && !s.test
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 300 {
		t.Fatalf("only %d files found: the test looks at the wrong place", len(all))
	}
	return all
}

// linkedPackages returns the directories of the module's packages that cmd/muster links on any system.
func linkedPackages(t *testing.T) map[string]bool {
	t.Helper()
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		c := exec.Command("go", "list", "-deps", "-json=ImportPath", "muster/cmd/muster")
		c.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct{ ImportPath string }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.ImportPath == "muster" {
				linked["."] = true
			} else if dir, ours := strings.CutPrefix(p.ImportPath, "muster/"); ours {
				linked[dir] = true
			}
		}
	}
	return linked
}

// parse reads one file and counts its lines.
func parse(path, rel string) (source, error) {
	s := source{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go")}
	var err error
	if s.text, err = os.ReadFile(path); err != nil {
		return s, err
	}
	s.fset = token.NewFileSet()
	if s.syntax, err = parser.ParseFile(s.fset, rel, s.text, parser.ParseComments); err != nil {
		return s, err
	}
	s.counts = count(s.text)
	return s, nil
}

// count counts the lines of code and of comments in a file.
func count(text []byte) counts {
	code, comments := map[int]bool{}, map[int]bool{}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal == "\n" { // inserted at the end of a line
			continue
		}
		lines := code
		if tok == token.COMMENT {
			lines = comments
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			lines[first+i] = true
		}
	}
	maps.DeleteFunc(comments, func(line int, _ bool) bool { return code[line] })
	return counts{len(code), len(comments)}
}

// methodsByType returns how many methods each type of the module has, except for tests.
func methodsByType(all []source) map[string]int {
	methods := map[string]int{}
	for _, s := range all {
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || s.test {
				continue
			}
			methods[s.pkg+"."+receiver(f.Recv.List[0].Type)]++
		}
	}
	return methods
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
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

// sortedByCount returns the names in counts, the largest count first.
func sortedByCount(counts map[string]int) []string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	return names
}
