package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/check"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// venv makes a virtual environment with a file in its site-packages, and returns it with the variables that activate it.
func venv(t *testing.T, file, text string) (dir string, env []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command(tier.Needs(t, "python3"), "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		tier.Missing(t, "python3 makes no virtual environment: "+string(out))
	}
	site, _ := filepath.Glob(filepath.Join(dir, "lib", "python*", "site-packages"))
	if len(site) != 1 {
		t.Fatal(site)
	}
	gittest.Write(t, site[0], map[string]string{file: text})
	return dir, []string{"VIRTUAL_ENV=" + dir, "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
}

// With an active virtual environment and an editable install, a check imports what it is given: the merged tree. The
// user's checkout is green, and the tree is red.
func TestAnEditableInstallIsNotTheMergedTree(t *testing.T) {
	t.Parallel()
	finder := func(root string) string {
		return "MAPPING = {'pkg': '" + root + "/src/pkg'}\n"
	}
	for name, c := range map[string]struct {
		file     string
		text     func(root string) string
		problem  string
		isHidden bool
	}{
		"a path":                {file: "__editable__.pkg-1.pth", text: func(root string) string { return root + "/src\n" }},
		"a finder":              {file: "__editable___pkg_1_finder.py", text: finder},
		"another finder":        {file: "_pkg_editable_loader.py", text: finder, problem: "which is not the merged tree, because of "},
		"what is not there":     {file: "pkg.pth", text: func(root string) string { return root + "/gone\n" }, problem: "/gone, which is not the merged tree"},
		"what is of no concern": {file: "other.pth", text: func(root string) string { return root + "-other/src\n" }, isHidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a path" && name != "another finder" {
				tier.All(t)
			}
			t.Parallel()
			w := newWorld(t, map[string]string{"src/pkg/__init__.py": "value = 1\n"})
			_, env := venv(t, c.file, c.text(w.root))
			gittest.Write(t, w.root, map[string]string{"src/pkg/__init__.py": "value = 2\n"})
			w.git("commit", "-qam", "Break it")
			gittest.Write(t, w.root, map[string]string{"src/pkg/__init__.py": "value = 1\n"})
			receipts := t.TempDir()
			res := w.head(w.runner(`python3 -c 'import pkg; assert pkg.value == 1'`, func(o *check.Options) {
				o.Environ, o.Receipts = append([]string{"HOME=" + os.Getenv("HOME")}, env...), receipts
			}))
			if c.problem != "" {
				if !strings.Contains(res.Unverified, c.problem) {
					t.Errorf("%+v", res)
				}
				return
			}
			if res.Green || res.Unverified != "" {
				t.Errorf("%+v", res)
			}
			if !c.isHidden && !strings.Contains(res.Output, "AssertionError") {
				t.Errorf("%s", res.Output)
			}
		})
	}
}

// Variables that lead into the user's checkout lead to the merged tree, or are left out.
func TestVariablesLeadToTheMergedTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"bin/tool": "x\n", "lib/a": "a\n", "alt.mod": "module m\n"})
	lane := filepath.Join(t.TempDir(), "lane")
	w.git("worktree", "add", "-q", lane)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(w.root, link))
	for name, c := range map[string]struct{ set, want string }{
		"a list":            {"PYTHONPATH=" + w.root + "/lib:/usr/lib:" + w.root + "/none", "$PWD/lib:/usr/lib"},
		"the lane's":        {"NODE_PATH=" + lane + "/lib", "$PWD/lib"},
		"by a link":         {"CLASSPATH=" + link + "/lib", "$PWD/lib"},
		"the root":          {"PYTHONPATH=" + w.root, "$PWD"},
		"a flag":            {"GOFLAGS=-v -modfile=" + w.root + "/alt.mod -x", "-v -modfile=$PWD/alt.mod -x"},
		"nothing there":     {"CARGO_INSTALL_ROOT=" + w.root + "/none", ""},
		"a namesake":        {"LD_LIBRARY_PATH=" + w.root + "-2/lib", w.root + "-2/lib"},
		"an inactive venv":  {"VIRTUAL_ENV=" + w.root + "/.venv", ""},
		"beside the lane's": {"GEM_HOME=" + filepath.Dir(lane), filepath.Dir(lane)},
	} {
		name2, _, _ := strings.Cut(c.set, "=")
		res := w.head(w.runner(`test "$`+name2+`" = "`+c.want+`" || { echo "$`+name2+`"; exit 1; }`, func(o *check.Options) {
			o.Environ = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, c.set)
		}))
		if !res.Green || res.Unverified != "" {
			t.Errorf("%s: %s", name, res.Output)
		}
	}
}

// A set-up that links the user's checkout into the tree, and a tree that names it, prove nothing.
func TestLinksToTheUsersCheckout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, setup string }{
		"npm link":   {setup: "mkdir node_modules && ln -s 'ROOT/lib' node_modules/lib"},
		"npm scope":  {setup: "mkdir -p node_modules/@s && ln -s 'ROOT/lib' node_modules/@s/lib"},
		"go replace": {file: "go.mod", text: "module m\n\nreplace x => ROOT/lib\n"},
		"cargo":      {file: "Cargo.toml", text: "[patch.crates-io]\nx = { path = \"ROOT/lib\" }\n"},
	} {
		w := newWorld(t, map[string]string{"lib/a": "a\n"})
		if c.file != "" {
			gittest.Write(t, w.root, map[string]string{c.file: strings.ReplaceAll(c.text, "ROOT", w.root)})
			w.git("add", ".")
			w.git("commit", "-qm", "Name it")
		}
		res := w.head(w.runner("true", func(o *check.Options) { o.Check.Setup = strings.ReplaceAll(c.setup, "ROOT", w.root) }))
		if !strings.Contains(res.Unverified, w.root+"/lib, which is not the merged tree, because of ") {
			t.Errorf("%s: %+v", name, res)
		}
	}
}
