//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"muster/internal/testing/require"
)

// Groups are made in the nearest directory above the own group that hands on what limits programs. Version 1 has none.
func TestFindParent(t *testing.T) {
	root := t.TempDir()
	for dir, controllers := range map[string]string{"": "cpu memory pids\n", "user": "cpu\n", "user/session": "memory pids\n", "user/session/scope": ""} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		for name, text := range map[string]string{"cgroup.subtree_control": controllers, "cgroup.procs": ""} {
			require.NoError(t, os.WriteFile(filepath.Join(root, dir, name), []byte(text), 0o600))
		}
	}
	for memberships, want := range map[string]string{
		"0::/user/session/scope\n":               root + "/user/session",
		"8:pids:/user/session/scope\n0::/user\n": root,
		"0::/../../elsewhere\n":                  "",
		"8:pids:/user/session/scope\n":           "",
		"":                                       "",
	} {
		if got := findParent(root, memberships); got != want {
			t.Errorf("%q: %s and not %s", memberships, got, want)
		}
	}
}

// A group gets its limits, and tells which of them its program has reached. Nothing of a pool stays, but the pools of
// living processes. The directories stand for those of the kernel, which are made with their files.
func TestPools(t *testing.T) {
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	parent := t.TempDir()
	alive, gone := filepath.Join(parent, fmt.Sprint(prefix, os.Getpid(), ".1")), filepath.Join(parent, fmt.Sprint(prefix, dead.Process.Pid, ".1"))
	for _, dir := range []string{alive + "/0", gone + "/0", gone + "/17"} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	removeAbandoned(parent)
	if left, _ := filepath.Glob(parent + "/*"); len(left) != 1 || left[0] != alive {
		t.Errorf("left: %v", left)
	}
	p := &Pool{dir: alive, made: 1}
	g := p.New(0, 0)
	for _, c := range []struct {
		pids, memory        string
		processes, isMemory bool
	}{{"max 0\n", "low 3\noom 1\noom_kill 0\n", false, false}, {"max 2\n", "oom_kill 0\n", true, false}, {"max 0\n", "oom_kill 1\n", false, true}} {
		for name, text := range map[string]string{"pids.events": c.pids, "memory.events": c.memory} {
			require.NoError(t, os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600))
		}
		if processes, memory := g.Reached(); processes != c.processes || memory != c.isMemory {
			t.Errorf("%+v: processes %v, memory %v", c, processes, memory)
		}
	}
	for _, name := range []string{"pids.events", "memory.events"} {
		require.NoError(t, os.Remove(filepath.Join(g.dir, name)))
	}
	g.Remove()
	if p.Close(); len(require.Value(os.ReadDir(parent))(t)) > 0 {
		t.Error("something of the pool stays")
	}
	if p.New(1, 0) != nil {
		t.Error("a group without a file for its limit is none")
	}
}
