package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/check"
	"muster/internal/testing/gittest"
)

// withEnv gives checks an environment that has these variables too.
func withEnv(set ...string) func(*check.Options) {
	return func(o *check.Options) { o.Environ = append(o.Environ, set...) }
}

// lane runs a command as one in a lane: with the environment that checks are told of, and the caches where programs
// look for them by default.
func lane(t *testing.T, command string, env ...string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// A command of a lane rewrites what the go command has compiled, wherever it is told that this lies. The next check of
// a tree with a failing test is red all the same.
func TestNoCompiledPackageOfALaneIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"go.mod": "module m\n\ngo 1.24\n",
		"m.go": "package m\n\nvar said = \"a bad answer\"\n\n//go:noinline\nfunc Say() string { return said }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestSay(t *testing.T) {\n" +
			"\tif said := Say(); said[2] != 'g' {\n\t\tt.Errorf(\"it says %s\", said)\n\t}\n}\n"})
	users, cache := filepath.Join(t.TempDir(), "go-build"), t.TempDir()
	gittest.GoCache(t, cache)
	set := []string{"GOCACHE=" + users, "HOME=" + t.TempDir()}
	r := w.runner("go test ./...", kept(cache), withEnv(set...))
	const poison = `mkdir -p "$GOCACHE"
grep -rl "a bad answer" "$GOCACHE" "$HOME" | xargs -r sed -i 's/a bad answer/a gut answer/g'`
	if res := w.head(r); res.Green || !strings.Contains(res.Output, "it says a bad answer") {
		t.Fatalf("%s\n%s", res.How, res.Output)
	}
	lane(t, poison, set...)
	if res := w.head(r); res.Green {
		t.Errorf("a lane has turned the check green:\n%s", res.Output)
	}
	if entries, err := os.ReadDir(users); err != nil || len(entries) > 0 {
		t.Errorf("the check has built in the lanes' cache: %v, %v", entries, err)
	}
}

// Whatever the user lets several checkouts build in, a check builds elsewhere: nothing that a lane's command leaves
// there is found. PNPM links its packages, so its store is the checks' own where it is used.
func TestChecksReadNoCacheOfLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a", "pnpm-lock.yaml": "lockfileVersion: '9.0'\n"})
	names := strings.Fields(`GOCACHE XDG_CACHE_HOME GOLANGCI_LINT_CACHE PIP_CACHE_DIR UV_CACHE_DIR RUFF_CACHE_DIR
		MYPY_CACHE_DIR CCACHE_DIR SCCACHE_DIR TURBO_CACHE_DIR YARN_CACHE_FOLDER DENO_DIR BUN_INSTALL_CACHE_DIR CARGO_TARGET_DIR
		CARGO_BUILD_TARGET_DIR PYTHONPYCACHEPREFIX NODE_COMPILE_CACHE ZIG_GLOBAL_CACHE_DIR NX_CACHE_DIRECTORY
		npm_config_store_dir GOTMPDIR TMPDIR`)
	shared, set := t.TempDir(), []string{"GOCACHEPROG=x", "CCACHE_REMOTE_STORAGE=x"}
	for _, name := range names {
		gittest.Write(t, shared, map[string]string{name + "/x": "forged"})
		set = append(set, name+"="+filepath.Join(shared, name))
	}
	command := `test -z "$GOCACHEPROG$CCACHE_REMOTE_STORAGE" || exit 1
for name in ` + strings.Join(names, " ") + `; do
	eval "dir=\$$name"
	test -z "$dir" || { test ! -e "$dir/x" && mkdir -p "$dir" && touch "$dir/y"; } || { echo "in $name"; exit 1; }
done`
	for _, change := range [][]func(*check.Options){{withEnv(set...)}, {withEnv(set...), kept(t.TempDir())}} {
		if res := w.head(w.runner(command, change...)); !res.Green {
			t.Errorf("the check finds what a lane has left:\n%s", res.Output)
		}
		if left, _ := filepath.Glob(filepath.Join(shared, "*", "y")); len(left) > 0 {
			t.Errorf("the check keeps what it makes where lanes have theirs: %v", left)
		}
	}
}
