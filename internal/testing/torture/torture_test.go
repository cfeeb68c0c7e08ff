//go:build failpoint

package torture

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// TestMain makes this test binary the command when its arguments are not those of a test.
func TestMain(m *testing.M) {
	proc.GuardMain()
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(Main(os.Args[1:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // with -race every process would sleep for a second at its end
	os.Exit(m.Run())
}

// TestCommand checks a short session of one scenario, what is refused, that a worker works in the directory of a session
// only, and that the role muster is the program with failpoints.
func TestCommand(t *testing.T) {
	gittest.Env(t)
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, c := range []struct {
		fault string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"-only", "claims", "-minutes", "0", "-seed", "1"}, exitDone,
			`^seed 1, in .*\nSCENARIO .*\nclaims +\d+ tasks +24 +0 +0 +0 +\d+s\n$`},
		{"", []string{"-help"}, exitDone, "scenarios.*: claims, landings, team"},
		{"", []string{"claims"}, exitUsage, "Usage of muster-torture:"},
		{"", []string{"-minutes", "-1"}, exitUsage, "Usage of muster-torture:"},
		{"", []string{"-only", "nothing"}, exitUsage, "Usage of muster-torture:"},
		{"", []string{roleWorker, "{}"}, exitError, "no job in the directory of a session"},
		{"", []string{roleWorker, `{"Kind":"claim","Dir":"` + dir + `/x"}`}, exitError, "no job"},
		{"kill:no.such", []string{roleMuster, "version"}, exitUsage, `there is no point "no.such"`},
	} {
		cmd := exec.Command(self, c.args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), faultinject.Variable+"="+c.fault, "TMPDIR="+dir)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("%v: exit code %d: %s", c.args, code, out)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestInstalledBinary checks that the program that people install has no failpoints: neither the environment variables
// nor the names of points are in it. The same search in this binary must find each of them.
func TestInstalledBinary(t *testing.T) {
	tier.All(t) // it builds a program
	binary := filepath.Join(t.TempDir(), "muster")
	if out, err := exec.Command("go", "build", "-tags=", "-o", binary, "muster/cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	installed, err := os.ReadFile(binary)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	withPoints, err := os.ReadFile(self)
	require.NoError(t, err)
	names := []string{faultinject.Variable}
	for _, p := range faultinject.Places() {
		switch prefix, _, _ := strings.Cut(p.Name, "."); prefix {
		case "landing", "teammate": // packages: the names of their functions look like points
		case "lane": // events have such names
		default:
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		if bytes.Contains(installed, []byte(name)) {
			t.Errorf("the installed binary contains %s", name)
		}
		if !bytes.Contains(withPoints, []byte(name)) {
			t.Errorf("the binary with failpoints does not contain %s", name)
		}
	}
}

// checkArchived returns what is wrong after an archiving.
func checkArchived(t *testing.T, root string) string {
	refs := gittest.Git(t, root, "for-each-ref", "--format=%(refname)", "refs/muster/archive/")
	in, _ := filepath.Glob(root + "/.team/archive/*/*/task_1.json")
	left, _ := filepath.Glob(root + "/.worktrees/try")
	if strings.Count(refs, "refs/") != 1 || len(in) != 1 || len(left) != 0 {
		return refs + strings.Join(append(in, left...), " ")
	}
	return ""
}

// archiveNamed gives the one archive a name.
func archiveNamed(t *testing.T, root, name string) {
	all, err := filepath.Glob(root + "/.team/archive/2*")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	require.NoError(t, os.Rename(all[0], filepath.Join(filepath.Dir(all[0]), name)))
}

// checkRestored returns what is wrong after an archived team was brought back.
func checkRestored(t *testing.T, root string) (wrong string) {
	for name, want := range map[string]string{".tasks/task_1.json": "one", ".team/members/alice.json": "coder",
		".team/inbox/alice.jsonl": "hello", ".worktrees/try/file": "precious", ".tasks/meta.json": `"next_id": 2`} {
		if data := gittest.Read(t, root, name); strings.Count(data, want) != 1 {
			wrong += name + " has " + data + "\n"
		}
	}
	if left, _ := filepath.Glob(root + "/.team/archive/[^.]*"); len(left) > 0 { // without what killed processes staged
		wrong += strings.Join(left, " ")
	}
	return wrong
}

const leftover = ".tasks/.left.json.abcdefghijkl.tmp" // of a killed process

var damaged = []string{".tasks/meta.json", ".worktrees/index.json", ".team/config.json"}

func damage(t *testing.T, root string) {
	files := map[string]string{leftover: "{"}
	for _, name := range damaged {
		files[name] = `{"half`
	}
	gittest.Write(t, root, files)
	old := time.Now().Add(-30 * time.Minute)
	require.NoError(t, os.Chtimes(filepath.Join(root, leftover), old, old))
}

// checkRepaired returns what is wrong after a repair.
func checkRepaired(t *testing.T, root string) (wrong string) {
	for _, name := range damaged {
		kept, _ := filepath.Glob(root + "/.team/damaged/*" + strings.TrimSuffix(filepath.Base(name), ".json") + "*")
		if data := gittest.Read(t, root, name); !json.Valid([]byte(data)) || len(kept) == 0 {
			wrong += name + " is not repaired, or not kept: " + data
		}
	}
	if !strings.Contains(gittest.Read(t, root, ".worktrees/index.json"), `"try"`) || gittest.Read(t, root, leftover) != "" {
		wrong += "the lane is unknown, or a leftover is there"
	}
	return wrong
}

// TestMaintenanceIsKilledAtEveryPoint kills "muster archive" and its "restore", and "muster doctor --repair" of a damaged
// state, at every point that they pass, and gives the command again. Then all is done, and nothing is lost or there twice.
func TestMaintenanceIsKilledAtEveryPoint(t *testing.T) {
	tier.All(t)
	gittest.Env(t)
	for name, c := range map[string]struct {
		args   []string
		before []string // a command
		damage func(t *testing.T, root string)
		check  func(t *testing.T, root string) (wrong string)
	}{
		"archive": {[]string{"archive", "--yes"}, nil, func(*testing.T, string) {}, checkArchived},
		"restore": {[]string{"archive", "restore", "one"}, []string{"archive", "--yes"},
			func(t *testing.T, root string) { archiveNamed(t, root, "one") }, checkRestored},
		"repair": {[]string{"doctor", "--repair"}, nil, damage, checkRepaired},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := (&session{dir: t.TempDir()}).newEnv(t.Context(), "my work")
			require.NoError(t, err)
			require.NoError(t, a.Close())
			run := func(arm string, args ...string) (killed bool, err error) { return a.muster(t.Context(), arm, args...) }
			// A task, a member with a mail, a lane with work in it.
			for _, args := range [][]string{{"task", "add", "one"}, {"team", "spawn", "alice", "--role", "coder"},
				{"mail", "send", "alice", "hello"}, {"worktree", "create", "try", "--task", "1"},
				{"worktree", "run", "try", "echo precious > file"}, c.before} {
				if args == nil {
					continue
				}
				_, err := run("", args...)
				require.NoError(t, err)
			}
			c.damage(t, a.Root())
			require.NoError(t, os.Rename(a.Root(), a.at("before")))
			restore := func() {
				require.NoError(t, os.RemoveAll(a.Root()))
				require.NoError(t, exec.Command("cp", "-a", a.at("before"), a.Root()).Run())
			}
			restore()
			if _, err := run("list:"+a.at("points"), c.args...); err != nil || c.check(t, a.Root()) != "" {
				t.Fatalf("unharmed: %v\n%s", err, c.check(t, a.Root()))
			}
			points := strings.Fields(gittest.Read(t, a.at(""), "points"))
			if len(points) < 20 {
				t.Errorf("it passes only %v", points)
			}
			for _, p := range points {
				if strings.HasPrefix(p, "registry.") {
					continue // it is the user's, and written once
				}
				restore()
				if killed, err := run("kill:"+p, c.args...); !killed {
					t.Errorf("armed with %s it ends with %v", p, err)
				}
				// A command that was killed after its last step says that it has nothing left to do.
				_, err := run("", c.args...)
				if err != nil && !strings.Contains(err.Error(), "nothing to put aside") &&
					!strings.Contains(err.Error(), "no archived team") {
					t.Errorf("killed at %s, then it ends with %v", p, err)
				}
				if wrong := c.check(t, a.Root()); wrong != "" {
					t.Errorf("killed at %s: %s", p, wrong)
				}
			}
		})
	}
}
