// Package hostile holds the promises of docs/security.md against repositories, records, agents and servers that mean
// harm. Each directory below testdata is a table of cases: scripts of testscript in which each case begins with a
// comment "# case: NAME" and is judged by what happened outside of the program: files, refs, processes, requests,
// bytes.
//
// "./test.sh all" runs all cases. The first tier runs what stands in a script before the line "# The first tier ends
// here.", and no script without that line: at least one case of each class.
//
// Read hostile_test.go first: it runs the tables and has the commands that all of them share. The commands of one table
// alone are in the file that is named for it, those of repositories in landing_test.go.
package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/program"
	"muster/internal/testing/tier"
)

// endOfFirstTier is the line of a script at which the first tier stops.
const endOfFirstTier = "# The first tier ends here.\n"

func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){"measured": measured})
}

// withProgram puts the program first in the PATH before the tests run. It is built without the race detector, because
// the tables judge from outside, also by memory and by what /proc shows.
type withProgram struct{ *testing.M }

// Run runs the tests.
func (w withProgram) Run() int {
	path, err := program.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return w.M.Run()
}

// A command is what a script may say beside the commands of testscript.
type command = func(ts *testscript.TestScript, neg bool, args []string)

// runTable runs the scripts of testdata/name with the commands of the table beside the shared ones.
func runTable(t *testing.T, name string, own map[string]command) {
	t.Helper()
	commands := map[string]command{"repo": repo, "exits": exits, "contains": contains}
	maps.Copy(commands, own)
	testscript.Run(t, testscript.Params{Files: scriptsOf(t, name), Setup: setup, Cmds: commands, Condition: isCI,
		RequireExplicitExec: true})
}

// scriptsOf returns the scripts of a table, cut off where this tier ends.
func scriptsOf(t *testing.T, table string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", table, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatal(table, " has no scripts: ", err)
	}
	if tier.IsAll() {
		return all
	}
	dir, cases, run := t.TempDir(), 0, 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cases += countCases(text)
		first, rest, ok := bytes.Cut(text, []byte(endOfFirstTier))
		if !ok {
			continue
		}
		run += countCases(first)
		if at := bytes.Index(rest, []byte("\n-- ")); at >= 0 { // the files of the script
			first = append(first, rest[at+1:]...)
		}
		paths = append(paths, filepath.Join(dir, filepath.Base(path)))
		if err := os.WriteFile(paths[len(paths)-1], first, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d cases run; ./test.sh all runs the others", run, cases)
	return paths
}

func countCases(script []byte) int { return bytes.Count(script, []byte("# case: ")) }

// turn is a turn of a scripted member that calls a tool.
func turn(tool string, input map[string]any) any {
	return map[string]any{"do": []any{map[string]any{tool: input}}}
}

// bash is a turn with a command.
func bash(command string) any {
	return turn("bash", map[string]any{"command": command, "timeout": 300})
}

// claiming are the turns of a member that makes a task, claims it and goes on with other turns.
func claiming(turns ...any) []any {
	return append([]any{turn("task_create", map[string]any{"subject": "work"}),
		turn("claim_task", map[string]any{"task_id": "${task:work}"})}, turns...)
}

// working is claiming for a member that completes its task.
func working(turns ...any) []any {
	return append(claiming(turns...), turn("complete_task", map[string]any{"task_id": "${task:work}", "summary": "Works."}), done)
}

// done is the last turn.
var done any = map[string]any{"say": "Done."}

// scripted is the file of a model whose lead takes the turns.
func scripted(lead []any) []byte {
	model, err := json.Marshal(map[string]any{"speakers": map[string]any{"lead": lead}})
	if err != nil {
		panic(err)
	}
	return model
}

// isCI is the condition "ci": where programs may not be missing, nothing is skipped for want of one.
func isCI(condition string) (bool, error) {
	if condition != "ci" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return tier.IsAll() || os.Getenv("CI") == "true", nil
}

// setup gives a script a home of its own, git's settings from nowhere else, and no keys.
func setup(e *testscript.Env) error {
	for k, v := range map[string]string{
		"HOME": e.WorkDir + "/home", "XDG_CONFIG_HOME": e.WorkDir + "/home/config",
		"XDG_STATE_HOME": e.WorkDir + "/home/state", "TZ": "UTC",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": e.WorkDir,
		"MUSTER_SANDBOX_ENABLED": "false", // what muster holds by itself is tried; escapes_test.go tries the sandbox
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

// TestThePageNamesItsTests checks that docs/security.md names each table, and that each table and each test that it names
// exists.
func TestThePageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	exists := map[string]bool{}
	for _, path := range tables {
		name := strings.TrimSuffix(filepath.ToSlash(path), ".txtar")
		name = strings.TrimPrefix(name, "testdata/")
		exists[name] = true
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the table %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`((?:states|keys|landing|repositories|limits)/[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !exists[m[1]] {
			t.Errorf("there is no table %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z/]+) (Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		files, _ := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(m[1]), "*_test.go"))
		found := false
		for _, path := range files {
			text, err := os.ReadFile(path)
			found = found || err == nil && strings.Contains(string(text), "func "+m[2]+"(")
		}
		if !found {
			t.Errorf("%s has no %s", m[1], m[2])
		}
	}
}
