// Package rawnames finds the runtime's own names and markup in what people see: values such as plan_approval_request,
// kinds of events such as task.completed, tags such as <auto-claimed>, and calls of tools such as task_update{...}.
//
// The names are read from the source, so a constant that is added tomorrow is found too. Names of tools alone are not
// raw: people see which tool a member calls.
package rawnames

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Find returns the raw names in a text, each with what stands around it.
func Find(text string) []string {
	var found []string
	for _, at := range pattern().FindAllStringIndex(text, -1) {
		around := text[max(at[0]-30, 0):min(at[1]+30, len(text))]
		found = append(found, fmt.Sprintf("%q in %q", text[at[0]:at[1]], around))
	}
	return found
}

// pattern matches the raw names.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	root := moduleRoot()
	var names []string
	for _, name := range constants(root) {
		if strings.Contains(name, "_") && regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
			names = append(names, name)
		}
	}
	for _, name := range constants(filepath.Join(root, "journal")) {
		if strings.Contains(name, ".") {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	if len(names) < 20 {
		panic("rawnames: the constants were not found")
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\b|</?` + tags(root) + `[ >]|\b[a-z]+_[a-z]+ ?\{`)
})

// tags returns the expression of the tags' names.
func tags(root string) string {
	for _, c := range constants(filepath.Join(root, "internal", "text")) {
		if strings.HasPrefix(c, "(?:mail|") {
			return c
		}
	}
	panic("rawnames: the tags were not found")
}

// constants returns the values of the constants of the package in dir that are text.
func constants(dir string) (all []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			panic(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				for _, v := range s.(*ast.ValueSpec).Values {
					if text, ok := textOf(v); ok {
						all = append(all, text)
					}
				}
			}
		}
	}
	return all
}

// textOf returns the text of a literal, or of several with + between them.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, isText := textOf(e.X)
		b, isTextToo := textOf(e.Y)
		return a + b, isText && isTextToo
	}
	return "", false
}

// moduleRoot returns the directory with go.mod above the directory of the test.
func moduleRoot() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	panic("rawnames: there is no go.mod")
}
