package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is a file of a package with one small change.
type mutant struct {
	path   string // of the file
	line   int
	what   string // the change: "a == b  ->  a != b"
	source []byte
}

// mutants returns every mutant of the package's files whose names match the pattern, or of all files without one, in
// the order of the source.
func (p pkg) mutants(files *regexp.Regexp) (all []mutant, err error) {
	for _, name := range p.GoFiles {
		if files != nil && !files.MatchString(name) {
			continue
		}
		path := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := mutate(path, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// swaps are the operators and what each becomes.
var swaps = map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND}

// texts are functions whose arguments only people read: messages, hints and log lines. Nothing in them is changed, and
// a call of one is not dropped, since no test needs to hold it.
var texts = []string{"Errorf", "WithHint", "Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext",
	"WarnContext", "ErrorContext", "Log", "Logf", "Print", "Printf", "Println", "Point", "panic"}

// places are functions that do nothing but mark a place, at which a test of the whole program kills the process. They
// are empty in an ordinary build, so to drop a call of one, or to rename the place, leaves the same program.
var places = []string{"failpoint.Hit", "failpoint.HitFile"}

// finder collects the mutants of one file.
type finder struct {
	path   string
	source []byte
	fset   *token.FileSet
	found  []mutant
}

// mutate returns the mutants of one file. Constants, and what is outside of functions, stay as they are.
func mutate(path string, source []byte) ([]mutant, error) {
	f := &finder{path: path, source: source, fset: token.NewFileSet()}
	file, err := parser.ParseFile(f.fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function(fn.Type, fn.Body)
		}
	}
	return f.found, nil
}

// function looks for mutants in a function's body. A literal inside is a function of its own: it has other results.
func (f *finder) function(sig *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.function(n.Type, n.Body)
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.CallExpr:
			return !f.forPeople(n)
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.IndexExpr:
			f.number(n.Index)
		case *ast.SliceExpr:
			f.number(n.Low)
			f.number(n.High)
		case *ast.ReturnStmt:
			f.result(sig, n)
		case *ast.Ident:
			if flip := map[string]string{"true": "false", "false": "true"}[n.Name]; flip != "" {
				f.add(n, flip)
			}
		}
		return true
	})
}

// add notes the mutant in which the node reads otherwise.
func (f *finder) add(n ast.Node, now string) {
	from, to := f.fset.Position(n.Pos()), f.fset.Position(n.End())
	what := fmt.Sprintf("%s  ->  %s", oneLine(f.text(n)), oneLine(now))
	changed := slices.Concat(f.source[:from.Offset], []byte(now), f.source[to.Offset:])
	f.found = append(f.found, mutant{f.path, from.Line, what, changed})
}

// text is the node's source.
func (f *finder) text(n ast.Node) string { return f.between(n, n) }

// between is the source from the start of one node to the end of another.
func (f *finder) between(a, b ast.Node) string {
	return string(f.source[f.fset.Position(a.Pos()).Offset:f.fset.Position(b.End()).Offset])
}

// statements drops calls, and what assignments store. The right side of an assignment is kept, so that what it uses is
// still used and what it does is still done.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok && !f.forPeople(c) {
				f.add(s, "{}")
			}
		case *ast.IncDecStmt:
			f.add(s, "{}")
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return f.text(e) != "_" }) {
				continue
			}
			f.add(s, strings.Repeat("_, ", len(s.Lhs)-1)+"_ = "+f.between(s.Rhs[0], s))
		}
	}
}

// condition negates the condition of an if. A comparison is left to binary, which does the same or more.
func (f *finder) condition(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	f.add(cond, "!("+f.text(cond)+")")
}

// binary swaps the operator and moves its numbers by one. Whether err is nil is not turned around: every test that gets
// there would fail, which says nothing of the tests.
func (f *finder) binary(b *ast.BinaryExpr) {
	other, ok := swaps[b.Op]
	if ok && !(strings.HasPrefix(f.text(b.X), "err") && f.text(b.Y) == "nil") {
		f.add(b, f.text(b.X)+" "+other.String()+" "+f.text(b.Y))
	}
	if ok || b.Op == token.ADD || b.Op == token.SUB {
		f.number(b.X)
		f.number(b.Y)
	}
}

// number adds one to a whole number.
func (f *finder) number(e ast.Expr) {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.INT {
		if n, err := strconv.Atoi(l.Value); err == nil {
			f.add(l, strconv.Itoa(n+1))
		}
	}
}

// result returns nil in place of an error.
func (f *finder) result(sig *ast.FuncType, r *ast.ReturnStmt) {
	if sig.Results == nil || len(r.Results) != sig.Results.NumFields() {
		return
	}
	last := sig.Results.List[len(sig.Results.List)-1].Type
	value := r.Results[len(r.Results)-1]
	if f.text(last) == "error" && f.text(value) != "nil" {
		f.add(value, "nil")
	}
}

// forPeople reports whether a call is one of texts or of places.
func (f *finder) forPeople(c *ast.CallExpr) bool {
	name := f.text(c.Fun)
	return slices.Contains(texts, name[strings.LastIndex(name, ".")+1:]) || slices.Contains(places, name)
}

// maxText is how many bytes of source a line about a mutant shows.
const maxText = 70

// oneLine is source on one line, cut where it is long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}
