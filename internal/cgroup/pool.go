//go:build linux

// Package cgroup limits programs by control groups of the kernel: how many processes they may be, and how much memory
// they may use. Programs in one group also share the processors as one, however many they are.
//
// A Pool makes groups where this process may make some: version 2 where it is delegated, as it is to the programs of a
// user's session below systemd, else version 1 where it can be written. NewPool says why where neither works. A group
// is taken for a program, which is started in it, and goes back to the pool when all that the program has started is
// dead.
//
// The package keeps these invariants:
//
//   - A program is in its group before it runs: in version 2 the kernel starts it there, and in version 1 the thread
//     that starts it is there. So nothing that it starts can be outside.
//   - A group is taken for one program at a time, and no group of this process is ever given the name of another.
//   - The directories of a pool go with it. Those of a process that was killed go when the next pool is made.
//
// Who decides the limits, and what happens to a program that has reached one, is not said here (internal/proc).
//
// The source is Documentation/admin-guide/cgroup-v2.rst and cgroup-v1 of the kernel.
package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Limits are what the programs of a group may use; 0 is no limit.
type Limits struct {
	Processes int64 // processes and threads
	Memory    int64 // bytes, with the files in memory that they write and the swap space that they fill
}

// prefix begins the names of the directories of pools.
const prefix = "muster-"

// Pool has the groups of one process. It is safe for concurrent use.
type Pool struct {
	hierarchies []hierarchy

	mu   sync.Mutex
	made int // how many groups were made, and so the name of the next
	// free has the groups in which nothing runs, by their limits. To use one again costs nothing, and to make one costs
	// the kernel some memory for each processor, which it frees late. It is nil once the pool is closed.
	free map[Limits][]*Group
}

// NewPool makes the directories of a pool, whose name nobody else has. total limits what all its groups use together.
// The error says why there are no groups here.
func NewPool(name string, total Limits) (*Pool, error) {
	found, err := findHierarchies()
	if err != nil {
		return nil, err
	}
	p := &Pool{free: map[Limits][]*Group{}}
	for _, h := range found {
		h.removeAbandoned()
		h.dir = filepath.Join(h.parent, prefix+name)
		if err = h.make(h.dir); err != nil {
			continue
		}
		err = h.limit(h.dir, total)
		if err == nil && h.unified {
			// Controllers that groups of this one have are switched on here.
			err = write(h.dir, "cgroup.subtree_control", "+"+strings.Join(h.controllers, " +"))
		}
		if err != nil {
			_ = os.Remove(h.dir)
			continue
		}
		p.hierarchies = append(p.hierarchies, h)
	}
	if len(p.hierarchies) == 0 {
		return nil, err
	}
	return p, nil
}

// Limits reports which limits the groups of the pool keep.
func (p *Pool) Limits() (processes, memory bool) {
	for _, h := range p.hierarchies {
		processes = processes || h.has("pids")
		memory = memory || h.has("memory")
	}
	return processes, memory
}

// Take returns a group with limits, in which nothing runs.
func (p *Pool) Take(l Limits) (*Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if free := p.free[l]; len(free) > 0 {
		p.free[l] = free[:len(free)-1]
		g := free[len(free)-1]
		g.before = g.events()
		return g, nil
	}
	g := &Group{pool: p, limits: l, name: strconv.Itoa(p.made), fd: -1}
	p.made++
	for _, h := range p.hierarchies {
		dir := filepath.Join(h.dir, g.name)
		err := h.make(dir)
		if err == nil {
			err = h.limit(dir, l)
		}
		if err == nil && h.unified {
			err = g.open(dir)
		}
		if err != nil {
			g.remove()
			return nil, err
		}
	}
	g.before = g.events()
	return g, nil
}

// Close removes the groups of the pool. One in which something still runs stays, and the next pool removes it.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, free := range p.free {
		for _, g := range free {
			g.remove()
		}
	}
	p.free = nil
	for _, h := range p.hierarchies {
		_ = os.Remove(h.dir)
	}
}

// hierarchy is a tree of groups: the one of version 2, or that of some controllers of version 1.
type hierarchy struct {
	unified     bool     // version 2
	parent      string   // the directory in which pools are made
	own         string   // the directory of the group that this process is in
	dir         string   // that of the pool
	controllers []string // those that are used here: pids, memory and cpu
}

// has reports whether the hierarchy has a controller.
func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// make makes a directory for a group. One of the same name that is there is empty: names are not used twice.
func (h hierarchy) make(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// limit sets the limits of a group.
func (h hierarchy) limit(dir string, l Limits) error {
	if h.has("pids") && l.Processes > 0 {
		if err := write(dir, "pids.max", strconv.FormatInt(l.Processes, 10)); err != nil {
			return err
		}
	}
	if !h.has("memory") || l.Memory <= 0 {
		return nil
	}
	bytes := strconv.FormatInt(l.Memory, 10)
	if !h.unified {
		if err := write(dir, "memory.limit_in_bytes", bytes); err != nil {
			return err
		}
		// With the swap space; a kernel without an account of it has no such file.
		_ = write(dir, "memory.memsw.limit_in_bytes", bytes)
		return nil
	}
	if err := write(dir, "memory.max", bytes); err != nil {
		return err
	}
	_ = write(dir, "memory.swap.max", "0") // as above
	return nil
}

// removeAbandoned removes the directories of pools whose process was killed. What still has something running in it
// cannot be removed. The owner of a free group that goes makes another.
func (h hierarchy) removeAbandoned() {
	pools, _ := filepath.Glob(filepath.Join(h.parent, prefix+"*")) // the pattern is correct
	for _, pool := range pools {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(pool), prefix), ".")
		if _, err := os.Stat("/proc/" + pid); err == nil {
			continue
		}
		groups, _ := os.ReadDir(pool)
		for _, g := range groups {
			if g.IsDir() {
				_ = os.Remove(filepath.Join(pool, g.Name()))
			}
		}
		_ = os.Remove(pool)
	}
}

// write writes to a file of a group.
func write(dir, name, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
