//go:build linux

package cgroup

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is a control group of a pool, taken for one program.
type Group struct {
	pool   *Pool
	name   string
	limits Limits
	fd     int    // of its directory in version 2; -1 without one
	before events // when it was taken
}

// events count how often a limit was reached.
type events struct{ processes, memory int64 }

// open opens the directory, in which the kernel starts a process by its descriptor.
func (g *Group) open(dir string) (err error) {
	g.fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return err
}

// FD returns the descriptor of the group's directory in version 2, for SysProcAttr.CgroupFD; ok is false where there is
// none.
func (g *Group) FD() (fd int, ok bool) { return g.fd, g.fd >= 0 }

// Enter moves this thread into the groups of version 1, so that what it starts is in them, and returns what moves it
// back. The caller has locked the thread.
func (g *Group) Enter() (leave func(), err error) {
	var entered []hierarchy
	leave = func() {
		for _, h := range entered {
			// This is where the thread was before. Where it cannot go back it shares the limits of the program.
			_ = write(h.own, "tasks", "0")
		}
	}
	for _, h := range g.pool.hierarchies {
		if h.unified {
			continue
		}
		// "0" is the thread that writes. The kernel moves it without the lock that stops all forks of the machine.
		if err := write(filepath.Join(h.dir, g.name), "tasks", "0"); err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, h)
	}
	return leave, nil
}

// Reached reports which limits the program has reached since the group was taken. The memory's is reached when the
// kernel has killed a process for it.
func (g *Group) Reached() (processes, memory bool) {
	now := g.events()
	return now.processes > g.before.processes, now.memory > g.before.memory
}

// Release gives the group back. Nothing runs in it any more.
func (g *Group) Release() {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	if g.pool.free == nil { // the pool was closed
		g.remove()
		return
	}
	g.pool.free[g.limits] = append(g.pool.free[g.limits], g)
}

// remove removes the directories, as far as nothing runs in them.
func (g *Group) remove() {
	if g.fd >= 0 {
		_ = unix.Close(g.fd)
		g.fd = -1
	}
	for _, h := range g.pool.hierarchies {
		_ = os.Remove(filepath.Join(h.dir, g.name))
	}
}

// events reads how often the limits were reached. What cannot be read counts as never.
func (g *Group) events() (e events) {
	for _, h := range g.pool.hierarchies {
		dir := filepath.Join(h.dir, g.name)
		if h.has("pids") {
			e.processes = counter(filepath.Join(dir, "pids.events"), "max")
		}
		switch {
		case !h.has("memory"):
		case h.unified:
			e.memory = counter(filepath.Join(dir, "memory.events"), "oom_kill")
		default:
			e.memory = counter(filepath.Join(dir, "memory.oom_control"), "oom_kill")
		}
	}
	return e
}

// counter returns a number of a file with lines of a name and a number.
func counter(file, name string) int64 {
	data, _ := os.ReadFile(file)
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if key, value, _ := strings.Cut(s.Text(), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
