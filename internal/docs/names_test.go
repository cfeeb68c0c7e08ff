package docs

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

	"muster/internal/testing/require"
)

// architecture is the page that leads through the code.
const architecture = "docs/architecture.md"

// The forms of a code span that names something in the source. Any other span, such as a command, is not checked.
var (
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	pathForm  = regexp.MustCompile(`^\w[\w.-]*(/[\w.-]+)+/?$`)              // internal/board/claim.go
	nameForm  = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[A-Za-z_]\w*){1,2}$`) // board.Board.Claim, task.created
	wordForm  = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)                    // complete_task
	shortForm = regexp.MustCompile(`^[A-Z]\w*[a-z]\w*(\.\w+)*(\(\))?$`)     // Claim, Board.Claim, Claim()
)

// sourceNames are the names that the pages may use.
type sourceNames struct {
	declared map[string]bool // package.Name, package.Type.Method, package.Type.Field
	literals map[string]bool // the text of each string: names of tools, events and failpoints
	packages []string        // the directory of each package, relative to the module's; the root's is left out
}

// walkSource calls visit with each Go file of the module and the directory of its package. The file is nil for a test.
func walkSource(t *testing.T, visit func(dir string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			visit(filepath.ToSlash(dir), nil)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		visit(filepath.ToSlash(dir), file)
		return err
	})
	require.NoError(t, err)
}

func readSource(t *testing.T) sourceNames {
	t.Helper()
	names := sourceNames{declared: map[string]bool{}, literals: map[string]bool{}}
	walkSource(t, func(dir string, file *ast.File) {
		if dir != "." && !slices.Contains(names.packages, dir) {
			names.packages = append(names.packages, dir)
		}
		if file != nil {
			names.add(file)
		}
	})
	return names
}

func (s sourceNames) add(file *ast.File) {
	pkg := file.Name.Name
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := pkg
			if d.Recv != nil {
				name += "." + receiver(d.Recv.List[0].Type)
			}
			s.declared[name+"."+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.addSpec(pkg, spec)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.literals[text] = true
			}
		}
		return true
	})
}

// addSpec takes the names of one declaration: a type has its fields, or its methods when it is an interface.
func (s sourceNames) addSpec(pkg string, spec ast.Spec) {
	switch d := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range d.Names {
			s.declared[pkg+"."+n.Name] = true
		}
	case *ast.TypeSpec:
		name := pkg + "." + d.Name.Name
		s.declared[name] = true
		var members *ast.FieldList
		switch typ := d.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		default:
			return
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				s.declared[name+"."+n.Name] = true
			}
		}
	}
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func (s sourceNames) complaint(span string) string {
	if shortForm.MatchString(span) {
		return "a name without its package cannot be checked"
	}
	span = strings.TrimPrefix(span, "*")
	span = strings.TrimSuffix(strings.TrimSuffix(span, "[T]"), "()")
	isFile := func() bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(span)))
		return err == nil
	}
	switch {
	case strings.HasPrefix(span, "refs/"): // a git ref
		return ""
	case pathForm.MatchString(span):
		if !isFile() {
			return "no such file"
		}
	case nameForm.MatchString(span):
		isText := span == strings.ToLower(span) && s.literals[span]
		if !s.declared[span] && !isText && !isFile() {
			return "no such name"
		}
	case wordForm.MatchString(span):
		if !s.literals[span] {
			return "no such tool"
		}
	}
	return ""
}

// check returns a complaint for each name in a page's code spans that the source does not have. Fenced blocks are
// left out.
func (s sourceNames) check(page, text string) (complaints []string) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
			if why := s.complaint(m[1]); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s:%d: `%s`: %s", page, i+1, m[1], why))
			}
		}
	}
	return complaints
}

// TestNames checks that what the pages for contributors name in code spans exists, and that the page of the
// architecture names every package. A name that does not exist is found, with its line.
func TestNames(t *testing.T) {
	names := readSource(t)
	for _, page := range []string{architecture, "CONTRIBUTING.md"} {
		data := require.Value(os.ReadFile(filepath.Join(root, page)))(t)
		for _, complaint := range names.check(page, string(data)) {
			t.Error(complaint)
		}
		if page != architecture {
			continue
		}
		for _, dir := range names.packages {
			if !strings.Contains(string(data), "`"+dir+"`") {
				t.Errorf("%s does not name the package `%s`: add it to the table of layers", page, dir)
			}
		}
	}
	for _, span := range []string{
		"muster.Tusk", "muster.Task.Tail", "muster.Table.Putt", "nowhere.Name", "nowhere.go", "internal/nowhere",
		"internal/docs/nowhere.go", "complete_nothing", "task.destroyed", "Task.Effects", "Encode()", "Encode",
	} {
		got := names.check("page", "first\n```\n`"+span+"`\n```\n`"+span+"`\n")
		if len(got) != 1 || !strings.HasPrefix(got[0], "page:5: `"+span+"`: ") {
			t.Errorf("%s: complaints %q", span, got)
		}
	}
}
