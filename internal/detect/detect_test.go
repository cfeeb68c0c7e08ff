package detect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/yamldoc"
)

var update = flag.Bool("update", false, "write what was found into the files")

// wantFile is the file of a tree that says what Look returns.
const wantFile = "want"

// treeOf returns the tree that an archive holds, without what is expected of it.
func treeOf(a *txtar.Archive) Tree {
	t, content := Tree{}, map[string]string{}
	for _, f := range a.Files {
		if f.Name != wantFile {
			t.Files, content[f.Name] = append(t.Files, f.Name), string(f.Data)
		}
	}
	slices.Sort(t.Files)
	t.Read = func(path string) string { return content[path] }
	return t
}

// describe returns a proposal as lines.
func describe(p Proposal) string {
	var b strings.Builder
	for _, s := range p.Setup {
		fmt.Fprintf(&b, "setup: %s\n  because %s\n", s.Command, s.Reason)
	}
	if p.WholeTree {
		b.WriteString("inputs: all files\n")
	} else if len(p.Inputs) > 0 {
		fmt.Fprintf(&b, "inputs: %s\n", strings.Join(p.Inputs, " "))
	}
	for _, s := range p.Checks {
		kind := "check"
		if s.Advisory {
			kind = "advisory"
		}
		fmt.Fprintf(&b, "%s %s: %s\n  because %s\n", kind, s.Name, s.Command, s.Reason)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func TestLook(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d trees, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := require.Value(txtar.ParseFile(file))(t)
			got, want := describe(Look(treeOf(a))), ""
			for _, f := range a.Files {
				if f.Name == wantFile {
					want = string(f.Data)
				}
			}
			if *update {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == wantFile })
				a.Files = append(a.Files, txtar.File{Name: wantFile, Data: []byte(got)})
				require.NoError(t, os.WriteFile(file, txtar.Format(a), 0o600))
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSettingsCanBeRead checks that the proposed file is YAML that says what the proposal says, whatever the commands
// and the reasons hold.
func TestSettingsCanBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.Custom(func(t *rapid.T) Step {
			return Step{Command: rapid.StringMatching(`[ -~]{1,20}[!-~]`).Draw(t, "command"), Reason: rapid.String().Draw(t, "reason")}
		})
		p := Proposal{Setup: []Step{step.Draw(t, "setup")}, Checks: []Step{step.Draw(t, "check")},
			Notes: []string{rapid.String().Draw(t, "note")}}
		root, err := yamldoc.Parse("muster.yaml", []byte(strings.ToValidUTF8(p.Settings(), "?")))
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Settings())
		}
		got := map[string]string{}
		for _, e := range yamldoc.Entries(root) {
			got[e.Key.GetToken().Value], _ = yamldoc.Scalar(e.Value)
		}
		want := map[string]string{"setup": p.SetupCommand(), "check": p.CheckCommand()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s\n%s", diff, p.Settings())
		}
	})
}

// TestNamedChecks checks that several checks have names that no two share and that a file of settings may have.
func TestNamedChecks(t *testing.T) {
	step := func(name string, advisory bool) Step {
		return Step{Name: name, Command: "true " + name, Advisory: advisory}
	}
	for _, c := range []struct {
		checks []Step
		want   string
	}{
		{nil, ""},
		{[]Step{step("test", false)}, ""},
		{[]Step{step("lint", true), step("style", true)}, ""},
		{[]Step{step("types", false), step("lint", true)}, "types lint!"},
		{[]Step{step("web-test", false), step("web-test", false), step("Web-test", true)}, "web-test web-test-2 Web-test-3!"},
		{[]Step{step("@a+b-test", false), step("", false), step(strings.Repeat("x", 50), false)}, "a-b-test check " + strings.Repeat("x", 35)},
	} {
		var names []string
		p := Proposal{Checks: c.checks}
		for _, n := range p.NamedChecks() {
			name := n.Name
			if n.Advisory {
				name += "!"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		root, err := yamldoc.Parse("muster.yaml", []byte(p.Settings()))
		if err != nil {
			t.Errorf("%v\n%s", err, p.Settings())
		}
		for _, e := range yamldoc.Entries(root) {
			if key := e.Key.GetToken().Value; (key == "checks") != (c.want != "") {
				t.Errorf("%s in %s", key, p.Settings())
			}
		}
	}
}

func TestInputs(t *testing.T) {
	files := []string{"Makefile", "a/package.json", "api/x.proto", "go.mod", "package-lock.json", "package.json", "req/all.txt", "src/a.js"}
	tree := Tree{Files: files, Read: func(string) string { return "{}" }}
	for _, c := range []struct {
		command  string
		patterns []string
		want     string // "all" is the whole tree
	}{
		{"", nil, ""},
		{"npm ci", nil, "a/package.json package-lock.json package.json"},
		{"npm ci --no-audit && (cd a && npm ci)", nil, "a/package.json package-lock.json package.json"},
		{"CI=1 npm ci", nil, "a/package.json package-lock.json package.json"},
		{"yarn build", nil, "all"},
		{"yarn --frozen-lockfile", nil, "a/package.json package-lock.json package.json"},
		{"npm ci && make generate", nil, "all"},
		{"npm ci && make generate", []string{"Makefile", "**/*.proto"}, "Makefile a/package.json api/x.proto package-lock.json package.json"},
		{"npm ci > log", nil, "all"},
		{"npm ci $(cat x)", nil, "all"},
		{"npm ci | tee x", nil, "all"},
		{"pip install -r req/all.txt", nil, "req/all.txt"},
		{"pip install .", nil, "all"},
		{"cargo fetch", nil, "all"}, // there is no file that it would read
		{"go mod download", nil, "go.mod"},
		{"true", nil, "all"},
	} {
		got, isWhole := Inputs(tree, c.command, c.patterns)
		text := strings.Join(got, " ")
		if isWhole {
			text = "all"
		}
		if text != c.want {
			t.Errorf("%q %v: %s, want %s", c.command, c.patterns, text, c.want)
		}
	}
}
