// Package hostile holds the promises of docs/security.md against repositories, records, agents and servers that mean
// harm. Each directory below testdata is a table of cases: scripts of testscript in which each case begins with a
// comment "# case: NAME" and is judged by what happened outside of the program: files, refs, processes, requests,
// bytes.
//
// "./test.sh all" runs all cases, and the first tier at least one of each class: a script ends at "[!all] stop" there, and
// one that begins with "[!all] skip" is left out.
//
// Read hostile_test.go first: it runs the tables and has the commands that all of them share. The commands of one table
// alone are in the file that is named for it, those of repositories in landing_test.go. The table lanes has attacks instead
// of scripts: lanes_test.go tries each on the real program in a sandbox.
package hostile

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/scripts"
)

func TestMain(m *testing.M) {
	if os.Getenv("PEAK") != "" { // the command peak has started this program
		measured()
	}
	gittest.Main(m)
}

// A command is what a script may say beside the commands of testscript.
type command = func(ts *testscript.TestScript, neg bool, args []string)

// runTable runs the scripts of testdata/name with the commands of the table beside the shared ones, and without a
// sandbox: what muster holds by itself is tried, and escapes_test.go tries the sandbox. The program is built without the
// race detector, because the tables judge from outside, also by memory and by what /proc shows.
func runTable(t *testing.T, name string, own map[string]command) {
	t.Helper()
	commands := map[string]command{"repo": scripts.Repo, "exits": scripts.Exits, "contains": scripts.Contains}
	maps.Copy(commands, own)
	bin := filepath.Dir(program.Path(t))
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", name),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			err := scripts.Setup(e)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "home", "state"))
			return err
		},
		Cmds: commands, Condition: scripts.Condition, RequireExplicitExec: true,
	})
}

func turn(tool string, input map[string]any) any {
	return map[string]any{"do": []any{map[string]any{tool: input}}}
}

func bash(command string) any {
	return turn("bash", map[string]any{"command": command, "timeout": 300})
}

// claiming are the turns of a member that makes a task, claims it and goes on with other turns.
func claiming(turns ...any) []any {
	return append([]any{turn("task_create", map[string]any{"subject": "work"}),
		turn("claim_task", map[string]any{"task_id": "${task:work}"})}, turns...)
}

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

// TestThePageNamesItsTests checks that docs/security.md names each table, and that each table and each test that it names
// exists.
func TestThePageNamesItsTests(t *testing.T) {
	page := require.Value(os.ReadFile(filepath.Join("..", "..", "docs", "security.md")))(t)
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
	for _, m := range regexp.MustCompile("`((?:states|keys|landing|repositories|limits|lanes)/[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
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
