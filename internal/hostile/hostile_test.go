// Package hostile holds the promises of docs/security.md against repositories, records, agents and servers that mean
// harm. Each directory below testdata is a table of cases: scripts of testscript in which each case begins with a
// comment "# case: NAME" and is judged by what happened outside of the program: files, refs, processes, requests,
// bytes.
//
// Read hostile_test.go first: it runs the tables and has the commands that all of them share. The commands of one table
// alone are in the file that is named for it.
package hostile

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(building{m}, map[string]func(){"measured": measured})
}

// building builds the program before the tests run, and puts it first in the PATH. It is what people install, without
// the race detector: the tables judge from outside, also by memory and by what /proc shows.
type building struct{ *testing.M }

// Run builds the program and runs the tests.
func (b building) Run() int {
	dir, err := os.MkdirTemp("", "muster-hostile-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", dir, "muster/cmd/muster")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the program cannot be built: %v\n%s", err, out)
		return 1
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return b.M.Run()
}

// A command is what a script may say beside the commands of testscript.
type command = func(ts *testscript.TestScript, neg bool, args []string)

// runTable runs the scripts of testdata/name with the commands of the table beside the shared ones, and fails when the
// table has fewer than least cases.
func runTable(t *testing.T, name string, least int, own map[string]command) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	if n := countCases(t, dir); n < least {
		t.Errorf("%s has %d cases; at least %d are wanted", dir, n, least)
	}
	commands := map[string]command{"repo": repo, "exits": exits, "contains": contains}
	maps.Copy(commands, own)
	testscript.Run(t, testscript.Params{Dir: dir, Setup: setup, Cmds: commands, Condition: isCI,
		RequireExplicitExec: true})
}

// isCI is the condition "ci": there nothing is skipped for want of a program.
func isCI(condition string) (bool, error) {
	if condition != "ci" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return os.Getenv("CI") == "true", nil
}

// countCases counts the lines "# case: NAME" of the scripts in dir.
func countCases(t *testing.T, dir string) (n int) {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count("\n"+string(text), "\n# case: ")
	}
	return n
}

// setup gives a script a home of its own, git's settings from nowhere else, and no keys.
func setup(e *testscript.Env) error {
	for k, v := range map[string]string{
		"HOME": e.WorkDir + "/home", "XDG_CONFIG_HOME": e.WorkDir + "/home/config",
		"XDG_STATE_HOME": e.WorkDir + "/home/state", "TZ": "UTC",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": e.WorkDir,
		"MUSTER_SANDBOX_ENABLED": "false",             // what muster holds by itself is tried; escapes_test.go tries the sandbox
		"GORACE":                 "atexit_sleep_ms=0", // with -race every program would sleep for a second at its end
		"GIT_AUTHOR_NAME":        "user", "GIT_AUTHOR_EMAIL": "user@example.org",
		"GIT_COMMITTER_NAME": "user", "GIT_COMMITTER_EMAIL": "user@example.org",
	} {
		e.Setenv(k, v)
	}
	return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
}

// repo DIR makes a repository, below $WORK where DIR is relative, with one commit on the branch main and goes there.
func repo(ts *testscript.TestScript, _ bool, args []string) {
	dir := args[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(ts.Getenv("WORK"), dir)
	}
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Exec("git", "init", "-q", "-b", "main", dir))
	ts.Check(ts.Exec("git", "-C", dir, "commit", "-q", "--allow-empty", "-m", "start"))
	ts.Check(ts.Chdir(dir))
}

// exits CODE PROGRAM ARGS... checks a program's exit code; stdout and stderr are kept as exec keeps them.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		if _, e := fmt.Sscanf(err.Error(), "exit status %d", &code); e != nil {
			ts.Fatalf("%v", err)
		}
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// contains FILE TEXT... checks that a file has each of the texts, as they are.
func contains(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.ReadFile(args[0])
	for _, want := range args[1:] {
		if strings.Contains(data, want) == neg {
			ts.Fatalf("%s has it: %v, %q\n%s", args[0], !neg, want, data)
		}
	}
}
