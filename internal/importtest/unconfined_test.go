package importtest

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repositories are how the code names the directories in which git works with the user's rights: the repository's own git
// directory and the user's checkout, where no command of a member writes.
var repositories = regexp.MustCompile(`^((\w+\.)*[rR]epo\.|r\.)?(CommonDir\(\)|Root\(\)|Here\(\)|headDir\(\)|common|root|here)$`)

// elsewhere are the other starts of git, by package, function and directory, each with the reason why no command of a
// member writes there, or what confines it.
var elsewhere = map[string]string{
	"internal/check environment p.git":            "the git directory of a check, which its programs cannot write",
	"internal/delivery Merge c.dir":               users,
	"internal/delivery open c.dir":                users,
	"internal/delivery uncommitted c.dir":         users,
	"internal/delivery OpenClean c.dir":           users,
	"internal/delivery explain c.dir":             users,
	"internal/delivery inCopy c.dir":              users,
	"internal/delivery list x.dir":                users,
	"internal/delivery lookOn x.dir":              users,
	"internal/delivery sinceSnapshot c.dir":       users,
	"internal/delivery has c.dir":                 users,
	"internal/delivery putBack x.dir":             users,
	"internal/git RunAsUser exec.CommandContext":  users,
	"internal/git UserConfig exec.CommandContext": "it reads no repository: GIT_DIR is the null device",
	"internal/git readConfig dir":                 opening,
	"internal/git checkVersion dir":               opening,
	"internal/git findRepo dir":                   opening,
	"internal/git Run dir":                        its,
	"internal/git revParse dir":                   its,
	"internal/git InCheckout tree":                confined,
	"internal/git SubmodulesNow dir":              confined,
	"internal/git inSandbox read[0]":              confined,
	"internal/git pack dir":                       confined,
	"internal/git unpack quarantine":              confined,
	"internal/git takeFiles quarantine":           confined,
}

const (
	users    = "the checkout in which the user asks for it; one with a place is refused"
	opening  = "where the user has started muster: of a lane, Open takes the repository's directory"
	its      = "the directory that its caller names"
	confined = "confined"
)

// TestGitWithTheUsersRightsNamesTheRepository reads the code: each start of git names one of repositories, or has its
// reason in elsewhere. Nothing but the packages of git and of lanes opens the places where members write.
func TestGitWithTheUsersRightsNamesTheRepository(t *testing.T) {
	used := map[string]bool{}
	eachFunction(t, func(pkg, function string, body ast.Node, text func(ast.Node) string) {
		check := func(at, dir string) {
			if repositories.MatchString(dir) {
				return
			}
			key := pkg + " " + function + " " + dir
			if used[key] = true; elsewhere[key] == "" {
				t.Errorf("%q starts git in %s, and nothing says why no command of a member writes there: %s", key, dir, at)
			}
		}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit: // git.Call{Dir: dir, ...}
				if name := text(n.Type); name != "git.Call" && (name != "Call" || pkg != "internal/git") {
					break
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && text(kv.Key) == "Dir" {
						check(text(n), text(kv.Value))
					}
				}
			case *ast.CallExpr:
				name := text(n.Fun)
				receiver, method := path.Ext("x."+strings.TrimSuffix(name, path.Ext(name))), path.Ext(name)
				isRepo := strings.EqualFold(receiver, ".repo") || pkg == "internal/git" && receiver == ".r"
				switch {
				case method == ".OpenPlace" || name == "OpenPlace":
					if pkg != "internal/git" && pkg != "internal/worktree" {
						t.Errorf("%s %s opens a place where members write", pkg, function)
					}
				case (isRepo && method == ".Run" || method == ".ResolveIn") && len(n.Args) > 1:
					check(text(n), text(n.Args[1]))
				case slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return text(a) == `"git"` }) && strings.Contains(name, "Command"):
					check(text(n), name)
				}
			}
			return true
		})
	})
	for key := range elsewhere {
		if !used[key] {
			t.Errorf("%q starts no git any more", key)
		}
	}
}

// eachFunction calls f with each function of the code that is no test, and no tool of tests.
func eachFunction(t *testing.T, f func(pkg, function string, body ast.Node, text func(ast.Node) string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file == "internal/testing" || file == "bench" || file == "tools"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, "../../"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		text := func(n ast.Node) string {
			var b strings.Builder
			if n != nil && !reflect.ValueOf(n).IsNil() {
				_ = printer.Fprint(&b, set, n) // to memory
			}
			return b.String()
		}
		for _, d := range parsed.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
				f(path.Dir(file), function.Name.Name, function.Body, text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
