//go:build linux

package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// Groups are made where this user may, whichever versions the system has mounted.
func TestFind(t *testing.T) {
	const (
		v1 = "34 25 0:30 / %s rw,relatime shared:9 - cgroup cgroup rw,%s\n"
		v2 = "34 25 0:29 %s %s rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	root := t.TempDir()
	session := filepath.Join(root, "user.slice/user-1000.slice/user@1000.service/app.slice")
	scope := filepath.Join(session, "app-terminal.scope")
	require.NoError(t, os.MkdirAll(scope, 0o755))
	for dir, controllers := range map[string]string{scope: "", session: "memory pids\n", filepath.Dir(session): "cpu memory pids\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers), 0o600))
	}
	own := strings.TrimPrefix(scope, root)
	for _, c := range []struct {
		name, mounts, memberships string
		closed                    string // cannot be written
		want                      string
	}{
		{"version 1", fmt.Sprintf(v1, "/c/pids", "pids") + fmt.Sprintf(v1, "/c/cpu", "cpu,cpuacct") + fmt.Sprintf(v1, "/c/memory", "memory") + fmt.Sprintf(v1, "/c/freezer", "freezer"), "8:pids:/\n5:freezer:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", "", "/c/pids [pids], /c/cpu [cpu], /c/memory/a/b [memory]"},
		{"a part of version 1", fmt.Sprintf(v1, "/c/pids", "pids"), "8:pids:/\n4:memory:/\n", "/c/pids", "none"},
		{"a container", "34 25 0:30 /docker/12 /c/pids rw - cgroup cgroup rw,pids\n", "8:pids:/docker/12/x\n", "", "/c/pids/x [pids]"},
		{"out of sight", "34 25 0:30 /docker/12 /c/pids rw - cgroup cgroup rw,pids\n", "8:pids:/other\n", "", "none"},
		{"a user's session", fmt.Sprintf(v2, "/", root), "0::" + own + "\n", "", session + " [pids memory]"},
		{"a closed session", fmt.Sprintf(v2, "/", root), "0::" + own + "\n", session, filepath.Dir(session) + " [pids memory cpu]"},
		{"no version 2 in use", fmt.Sprintf(v2, "/", "/nowhere"), "0::/\n", "", "none"},
		{"nothing", "25 1 254:0 / / rw - ext4 /dev/vda rw\n", "", "", "none"},
	} {
		all, err := find(c.mounts, c.memberships, func(path string) bool {
			return c.closed == "" || !strings.HasPrefix(path, c.closed) || strings.HasPrefix(c.closed, path+"/")
		})
		got := "none"
		if err == nil {
			var texts []string
			for _, h := range all {
				texts = append(texts, fmt.Sprint(h.parent, " ", h.controllers))
			}
			got = strings.Join(texts, ", ")
		}
		if got != c.want {
			t.Errorf("%s: %s and not %s", c.name, got, c.want)
		}
	}
}

// newPool makes a pool that limits processes. As root in CI there is one.
func newPool(t testing.TB, name string) *Pool {
	t.Helper()
	pool, err := NewPool(name, Limits{})
	if err != nil {
		if os.Getuid() != 0 {
			t.Skipf("left out: this user can make no control groups: %v", err)
		}
		tier.Missing(t, err.Error())
	}
	t.Cleanup(pool.Close)
	if processes, _ := pool.Limits(); !processes {
		t.Fatal("it does not limit processes")
	}
	return pool
}

// A group limits what is started in it, says so, and is used again by who comes next. Nothing of it stays.
func TestGroup(t *testing.T) {
	pool := newPool(t, fmt.Sprintf("%d.test", os.Getpid()))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var names []string
	for range 2 {
		g := require.Value(pool.Take(Limits{Processes: 5, Memory: 1 << 30}))(t)
		if p, m := g.Reached(); p || m {
			t.Error("a new group has reached a limit")
		}
		names = append(names, g.name)
		leave, err := g.Enter()
		require.NoError(t, err)
		var out bytes.Buffer
		c := exec.Command("sh", "-c", "grep -c "+prefix+strconv.Itoa(os.Getpid())+" /proc/self/cgroup; seq 8 | xargs -P 8 -I{} sleep 0.1")
		c.Stdout, c.SysProcAttr = &out, &syscall.SysProcAttr{}
		c.SysProcAttr.CgroupFD, c.SysProcAttr.UseCgroupFD = g.FD()
		err = c.Start()
		leave()
		require.NoError(t, err)
		if err := c.Wait(); err != nil { // xargs waits where it can start no more
			t.Error(err)
		}
		if p, _ := g.Reached(); !p || out.String() == "0\n" {
			t.Errorf("the limit was not reached: %v, groups %q", p, out.String())
		}
		g.Release()
	}
	if names[0] != names[1] {
		t.Errorf("groups %v", names)
	}
	own, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil || strings.Contains(string(own), prefix) {
		t.Errorf("the thread is still in a group: %s %v", own, err)
	}
	pool.Close()
	for _, h := range pool.hierarchies {
		if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
			t.Errorf("%s stays", h.dir)
		}
	}
}

// The directories of a process that was killed are removed by the next pool, and those of a living one are not.
func TestAbandoned(t *testing.T) {
	first := newPool(t, fmt.Sprintf("%d.first", os.Getpid()))
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	second := newPool(t, fmt.Sprintf("%d.1", dead.Process.Pid))
	require.Value(second.Take(Limits{Processes: 9}))(t)
	third := newPool(t, fmt.Sprintf("%d.third", os.Getpid()))
	for _, h := range append(first.hierarchies, third.hierarchies...) {
		if _, err := os.Stat(h.dir); err != nil {
			t.Errorf("of a living process: %v", err)
		}
	}
	for _, h := range second.hierarchies {
		if _, err := os.Stat(h.dir); err == nil {
			t.Errorf("%s stays", h.dir)
		}
	}
}
