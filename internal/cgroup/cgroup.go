//go:build linux

// Package cgroup limits programs by control groups of version 2 (Documentation/admin-guide/cgroup-v2.rst of the
// kernel): how many processes they may be, and how much memory they may use. Programs in one group also share the
// processors as one, however many they are.
//
// A Pool makes groups below the nearest group of this process that it may change and that hands on the controllers,
// as systemd delegates one to the session of a user. A program is started in its group by the kernel, so nothing that
// it starts can be outside. Package proc decides the limits, and what happens to a program that has reached one.
package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	mounted = "/sys/fs/cgroup" // where version 2 is mounted
	prefix  = "muster-"        // begins the names of the directories of pools
)

// Pool has the groups of one process. One goroutine uses it.
type Pool struct {
	dir  string
	made int // how many groups were made, and so the name of the next
}

// NewPool makes the directory of a pool, whose name no other has: the number of this process, a dot, and more. total
// limits the memory of all its groups together. It returns nil where there are no groups; such a pool makes none.
func NewPool(name string, total int64) *Pool {
	memberships, _ := os.ReadFile("/proc/self/cgroup")
	parent := findParent(mounted, string(memberships))
	if parent == "" {
		return nil
	}
	removeAbandoned(parent)
	p := &Pool{dir: filepath.Join(parent, prefix+name)}
	err := makeGroup(p.dir, 0, total)
	if err == nil {
		err = write(p.dir, "cgroup.subtree_control", "+pids +memory")
	}
	if err != nil {
		_ = os.Remove(p.dir)
		return nil
	}
	_ = write(p.dir, "cgroup.subtree_control", "+cpu") // not every session has it
	return p
}

// findParent returns the directory in which this process makes groups; "" where none is delegated to it. It is above
// its own group: one that has processes can have no groups with controllers below it. A process is started in a group
// only by who may write to cgroup.procs of the directory above both. memberships is what /proc/self/cgroup says.
func findParent(root, memberships string) string {
	for line := range strings.Lines(memberships) {
		own, isUnified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !isUnified {
			continue
		}
		for dir := filepath.Join(root, own); strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			text, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")) // what cannot be read has none
			has := strings.Fields(string(text))
			if slices.Contains(has, "pids") && slices.Contains(has, "memory") && unix.Access(dir, unix.W_OK) == nil &&
				unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
				return dir
			}
		}
	}
	return ""
}

// Close removes the pool. Where something still runs in a group, the next pool of any process removes it.
func (p *Pool) Close() {
	if p != nil {
		removePool(p.dir)
	}
}

// removeAbandoned removes the pools of processes that were killed. What still has something running in it stays.
func removeAbandoned(parent string) {
	pools, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is correct
	for _, dir := range pools {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), ".")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			removePool(dir)
		}
	}
}

func removePool(dir string) {
	groups, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	for _, g := range append(groups, dir) {
		_ = unix.Rmdir(g)
	}
}

// Group is a control group for one program.
type Group struct {
	FD  int // its descriptor, for SysProcAttr.CgroupFD
	dir string
}

// New makes a group that limits processes with their threads, and the bytes of their memory with the files in memory
// that they write; 0 is no limit. It returns nil where that fails.
func (p *Pool) New(processes, memory int64) *Group {
	if p == nil {
		return nil
	}
	g := &Group{dir: filepath.Join(p.dir, strconv.Itoa(p.made))}
	p.made++
	err := makeGroup(g.dir, processes, memory)
	if err == nil {
		g.FD, err = unix.Open(g.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		_ = unix.Rmdir(g.dir)
		return nil
	}
	return g
}

// Reached reports which limits the program has reached. The memory's is reached when the kernel has killed a process
// for it.
func (g *Group) Reached() (processes, memory bool) {
	return counter(g.dir, "pids.events", "max") > 0, counter(g.dir, "memory.events", "oom_kill") > 0
}

// Remove removes the group, in which nothing runs any more.
func (g *Group) Remove() {
	_ = unix.Close(g.FD)
	_ = unix.Rmdir(g.dir)
}

// counter returns a number of a file with lines of a name and a number. What cannot be read is 0.
func counter(dir, file, name string) (n int64) {
	data, _ := os.ReadFile(filepath.Join(dir, file))
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return n
}

// makeGroup makes the directory of a group with limits.
func makeGroup(dir string, processes, memory int64) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil && processes > 0 {
		err = write(dir, "pids.max", strconv.FormatInt(processes, 10))
	}
	if err == nil && memory > 0 {
		err = write(dir, "memory.max", strconv.FormatInt(memory, 10))
		_ = write(dir, "memory.swap.max", "0") // a kernel without an account of it has no such file
	}
	return err
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
}
