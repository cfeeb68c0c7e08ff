//go:build failpoint

package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/cli"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
	"muster/internal/testing/torture"
	"muster/store/file"
)

// The first argument of the processes that the crash tests start: this test binary is muster, or a worker, then.
const (
	roleMuster = "as-muster"
	roleWorker = "as-worker"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	if len(os.Args) < 2 || os.Args[1] != roleMuster && os.Args[1] != roleWorker {
		os.Exit(m.Run())
	}
	if err := faultinject.Arm(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Args[1] == roleMuster {
		os.Args = append(os.Args[:1:1], os.Args[2:]...)
		os.Exit(cli.Main())
	}
	if err := torture.Work(context.Background(), open, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(root string) (muster.Store, error) { return file.Open(root) }

// config returns the configuration of a session whose processes are this test binary.
func config(t *testing.T) torture.Config {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	home := t.TempDir()
	return torture.Config{Dir: filepath.Join(t.TempDir(), "torture"), Open: open,
		Muster: []string{self, roleMuster}, Worker: []string{self, roleWorker},
		Env: append(os.Environ(), "MUSTER_SANDBOX_ENABLED=false", "GORACE=atexit_sleep_ms=0", "HOME="+home,
			"XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)}
}

// TestScenarios is the short form of all scenarios. Nothing is lost, doubled or stuck, and the processes pass no points but
// those of the list, and all of a landing, a lane and a teammate.
func TestScenarios(t *testing.T) {
	tier.All(t)
	list := filepath.Join(t.TempDir(), "points")
	if err := faultinject.ArmWith("list:"+list, ""); err != nil { // the points that this process passes
		t.Fatal(err)
	}
	t.Cleanup(faultinject.Disarm)
	c := config(t)
	c.Seed, c.List = 3, list
	rows, err := torture.Run(t.Context(), c)
	must(t, err)
	for _, r := range rows {
		t.Logf("%+v", r)
		if r.Bad() {
			t.Errorf("%s: %s", r.Scenario, strings.Join(r.Violations, "\n"))
		}
	}
	data, err := os.ReadFile(list)
	must(t, err)
	passed := map[string]bool{}
	for name := range strings.FieldsSeq(string(data)) {
		passed[name] = true
		if !faultinject.Known(name) {
			t.Errorf("the point %s was passed, and is not on the list", name)
		}
	}
	for _, p := range faultinject.Points() {
		kind, _, _ := strings.Cut(p.Name, ".")
		// Reviews and arbiters need models: internal/landing has the crashes around them.
		if needsModel := strings.HasPrefix(p.Name, "landing.review") || strings.HasPrefix(p.Name, "landing.arbitrat"); needsModel {
			continue
		}
		switch kind {
		case "landing", "lane", "lanes", "teammate", "playbook", "refs", "packs", "inbox", "segments", "spend":
			if !passed[p.Name] {
				t.Errorf("the point %s is never passed", p.Name)
			}
		}
	}
}

// TestWorkerStaysInside checks that a worker writes only into the directory of a session.
func TestWorkerStaysInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine", "repo")
	must(t, os.MkdirAll(dir, 0o700))
	for _, job := range []string{"", "{}", fmt.Sprintf(`{"Kind":"claim","Dir":%q,"Name":"p1"}`, dir)} {
		if err := torture.Work(t.Context(), open, job); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", job, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) > 0 {
		t.Errorf("it has written %v", all)
	}
}

// TestDirectory checks that a directory that holds anything is refused.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	if _, err := torture.Run(t.Context(), torture.Config{Dir: dir}); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("%v", err)
	}
}

// rest is a team that nobody runs: a task, a member with a mail, a lane with work in it.
type rest struct {
	t    *testing.T
	root string
	env  []string
}

// muster runs the program armed with arm, and returns its exit code, -1 after a kill, and what it printed.
func (r rest) muster(arm string, args ...string) (code int, said string) {
	r.t.Helper()
	c := config(r.t)
	cmd := exec.Command(c.Muster[0], append(c.Muster[1:], args...)...)
	cmd.Dir, cmd.Env = r.root, append(r.env, faultinject.Variable+"="+arm)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (r rest) restore() {
	r.t.Helper()
	if out, err := exec.Command("sh", "-c", "rm -rf '"+r.root+"' && cp -a '"+r.root+".before' '"+r.root+"'").CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// TestMaintenanceIsKilledAtEveryPoint kills "muster archive", and "muster doctor --repair" of a damaged state, at every
// point that they pass, and gives the command again. Then all is done, and nothing is lost or there twice.
func TestMaintenanceIsKilledAtEveryPoint(t *testing.T) {
	tier.All(t)
	leftover := ".tasks/.left.json.abcdefghijkl.tmp" // of a killed process
	damaged := []string{".tasks/meta.json", ".worktrees/index.json", ".team/config.json"}
	for name, c := range map[string]struct {
		args   []string
		damage func(r rest)
		check  func(r rest) (wrong string)
	}{
		"archive": {[]string{"archive"}, func(rest) {}, func(r rest) string {
			refs := gittest.Git(r.t, r.root, "for-each-ref", "--format=%(refname)", "refs/muster/archive/")
			in, _ := filepath.Glob(r.root + "/.team/archive/*/*/task_1.json")
			left, _ := filepath.Glob(r.root + "/.worktrees/try")
			if strings.Count(refs, "refs/") != 1 || len(in) != 1 || len(left) != 0 {
				return refs + strings.Join(append(in, left...), " ")
			}
			return ""
		}},
		"repair": {[]string{"doctor", "--repair"}, func(r rest) {
			files := map[string]string{leftover: "{"}
			for _, name := range damaged {
				files[name] = `{"half`
			}
			gittest.Write(r.t, r.root, files)
			old := time.Now().Add(-30 * time.Minute)
			if err := os.Chtimes(filepath.Join(r.root, leftover), old, old); err != nil {
				r.t.Fatal(err)
			}
		}, func(r rest) (wrong string) {
			for _, name := range damaged {
				kept, _ := filepath.Glob(r.root + "/.team/damaged/*" + strings.TrimSuffix(filepath.Base(name), ".json") + "*")
				if data := gittest.Read(r.t, r.root, name); !json.Valid([]byte(data)) || len(kept) == 0 {
					wrong += name + " is not repaired, or not kept: " + data
				}
			}
			if !strings.Contains(gittest.Read(r.t, r.root, ".worktrees/index.json"), `"try"`) || gittest.Read(r.t, r.root, leftover) != "" {
				wrong += "the lane is unknown, or a leftover is there"
			}
			return wrong
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rest{t, gittest.Repo(t, map[string]string{"a": "a\n"}), config(t).Env}
			for _, args := range [][]string{{"task", "add", "one"}, {"team", "spawn", "alice", "--role", "coder"}, {"mail", "send", "alice", "hello"},
				{"worktree", "create", "try", "--task", "1"}, {"worktree", "run", "try", "echo precious > file"}} {
				if code, said := r.muster("", args...); code != 0 {
					t.Fatalf("muster %v: %d %s", args, code, said)
				}
			}
			c.damage(r)
			must(t, os.Rename(r.root, r.root+".before"))
			list := filepath.Join(t.TempDir(), "points")
			r.restore()
			if code, said := r.muster("list:"+list, c.args...); code != 0 || c.check(r) != "" {
				t.Fatalf("unharmed: %d %s\n%s", code, said, c.check(r))
			}
			points := strings.Fields(gittest.Read(t, filepath.Dir(list), "points"))
			if len(points) < 20 {
				t.Errorf("it passes only %v", points)
			}
			for _, p := range points {
				if strings.HasPrefix(p, "registry.") {
					continue // it is the user's, and written once
				}
				r.restore()
				if code, said := r.muster("kill:"+p, c.args...); code != -1 {
					t.Errorf("armed with %s it ends with %d: %s", p, code, said)
				}
				// A command that was killed after its last step says that it has nothing left to do.
				if code, said := r.muster("", c.args...); code != 0 && !strings.Contains(said, "nothing to put aside") {
					t.Errorf("killed at %s, then it ends with %d: %s", p, code, said)
				}
				if wrong := c.check(r); wrong != "" {
					t.Errorf("killed at %s: %s", p, wrong)
				}
			}
		})
	}
}
