package importtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// part is one of the parts into which a package is cut: its files, the parts of which it may use names, and those that
// it knows only by interfaces of its own.
type part struct{ files, uses, asks string }

// parts has the parts of packages that no imports keep apart. docs/architecture.md says what each is for.
var parts = map[string]map[string]part{
	"internal/landing": {
		"landing": {"lander.go land.go landed.go local.go ownwords.go return.go review.go revoke.go secrets.go snapshot.go", "queue guard texts work", ""},
		"queue":   {"queue.go stack.go move.go check.go", "guard work", ""},
		"guard":   {"guard.go prepare.go", "work", ""},
		"texts":   {"texts.go collision.go", "work", ""},
		"work":    {"options.go work.go refs.go message.go words.go revert.go", "", ""},
	},
	"internal/teammate": {
		"maker":        {"member.go", "life conversation toolbox lead ground", ""},
		"life":         {"life.go life_actions.go life_loop.go life_next.go life_phase.go life_presence.go life_rest.go", "conversation toolbox lead ground", ""},
		"conversation": {"conversation.go conversation_compact.go conversation_opening.go", "ground", "life toolbox maker"},
		"toolbox":      {"toolbox.go toolbox_claims.go toolbox_helpers.go toolbox_landing.go toolbox_lanes.go toolbox_merged.go toolbox_ownlane.go toolbox_paths.go toolbox_permissions.go toolbox_places.go toolbox_wrappers.go", "ground", "life maker"},
		"lead":         {"lead.go lead_progress.go", "ground", "life conversation maker"},
		"ground":       {"ground.go", "", "toolbox maker"},
	},
	"team": {
		"API": {"team.go start.go people.go tasks.go comments.go why.go members.go mail.go requests.go lanes.go said.go window.go subscribe.go attach.go",
			"run host operations site", ""},
		"run":        {"run.go join.go playbook.go forward.go snapshot.go summary.go leftovers.go", "host site", ""},
		"host":       {"host.go supervise.go runner.go finalize.go member.go model.go spending.go phases.go", "site", ""},
		"operations": {"operations.go undo.go clean.go target.go pullrequest.go receipts.go setup.go", "site", ""},
		"site":       {"site.go config.go repository.go sandbox.go events.go conversation.go", "", ""},
	},
}

// TestPartsUseOnlyTheirArrows checks that a file uses a type, function, method, field, variable or constant of another
// part only where there is an arrow. A type that implements an interface of another part is used by that part.
func TestPartsUseOnlyTheirArrows(t *testing.T) {
	for pkg, cut := range parts {
		all := map[string]string{} // the content of each file
		for _, name := range goFiles(t, pkg) {
			data, err := os.ReadFile(filepath.Join("../..", pkg, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(data)
		}
		for _, wrong := range wrongArrows(t, all, cut, exports(t, pkg)) {
			t.Errorf("%s: %s", pkg, wrong)
		}
	}
}

func TestWrongArrowsAreFound(t *testing.T) {
	files := map[string]string{
		"a.go": "package x\ntype doer interface{ do() }\nfunc f(b *b, d doer) { d.do(); b.g(); _ = b.n }",
		"b.go": "package x\ntype b struct{ n int }\nfunc (*b) do() {}\nfunc (*b) g() {}",
		"c.go": "package x",
	}
	for uses, want := range map[string]string{
		"b": "c.go is in no part",
		"":  "a.go (a) uses b of b; a.go (a) uses g of b; a.go (a) uses n of b; c.go is in no part; doer (a) is implemented by b of b",
	} {
		got := wrongArrows(t, files, map[string]part{"a": {"a.go", uses, ""}, "b": {"b.go", "", ""}}, nil)
		if strings.Join(got, "; ") != want {
			t.Errorf("with the arrow %q: %v", uses, got)
		}
	}
}

// wrongArrows returns what the files of a package use without an arrow.
func wrongArrows(t *testing.T, files map[string]string, cut map[string]part, imports types.Importer) []string {
	t.Helper()
	set, wrong := token.NewFileSet(), map[string]bool{}
	var parsed []*ast.File
	for name, text := range files {
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: imports}).Check("x", set, parsed, info)
	if err != nil {
		t.Fatal(err)
	}
	partOf := func(p token.Pos) string {
		name := set.Position(p).Filename
		for part, is := range cut {
			if slices.Contains(strings.Fields(is.files), name) {
				return part
			}
		}
		wrong[name+" is in no part"] = true
		return ""
	}
	check := func(from, to token.Pos, byInterface bool, what string) {
		a, b := partOf(from), partOf(to)
		may := strings.Fields(cut[a].uses)
		if byInterface {
			may = append(may, strings.Fields(cut[a].asks)...)
		}
		if a != "" && b != "" && a != b && !slices.Contains(may, b) {
			wrong[fmt.Sprintf(what, a, b)] = true
		}
	}
	for _, f := range parsed {
		partOf(f.Package)
	}
	for at, object := range info.Uses {
		if object.Pkg() == pkg {
			check(at.Pos(), object.Pos(), false, set.Position(at.Pos()).Filename+" (%s) uses "+object.Name()+" of %s")
		}
	}
	for _, a := range pkg.Scope().Names() {
		is, ok := pkg.Scope().Lookup(a).Type().Underlying().(*types.Interface)
		if !ok || is.NumMethods() == 0 {
			continue
		}
		for _, b := range pkg.Scope().Names() {
			object := pkg.Scope().Lookup(b)
			_, isType := object.(*types.TypeName)
			if isType && !types.IsInterface(object.Type()) && types.Implements(types.NewPointer(object.Type()), is) {
				check(pkg.Scope().Lookup(a).Pos(), object.Pos(), true, a+" (%s) is implemented by "+b+" of %s")
			}
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// goFiles lists the files of a package that are no tests, as they are with failpoints.
func goFiles(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-tags=failpoint", "-f", "{{range .GoFiles}}{{.}} {{end}}", "muster/"+pkg).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

// exports imports what a package imports, from what the compiler has exported of it.
func exports(t *testing.T, pkg string) types.Importer {
	t.Helper()
	out, err := exec.Command("go", "list", "-tags=failpoint", "-deps", "-export", "-json=ImportPath,Export", "muster/"+pkg).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}
