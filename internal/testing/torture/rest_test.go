//go:build failpoint

package torture_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

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
