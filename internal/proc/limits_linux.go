package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster/internal/cgroup"
)

// measurePause is how often the guard looks at what its tools use. A disk that takes 2 GB a second takes 200 MB
// meanwhile.
const measurePause = 100 * time.Millisecond

// limiter keeps the limits of tools. The guard's thread uses it, which is locked: a thread that the Go runtime starts
// while this one is in a group of a tool is started by another, and so is in no group.
type limiter struct {
	pool      *cgroup.Pool // nil where there are none
	processes bool         // the groups of pool limit them
	memory    bool
	opened    bool
	next      time.Time // when the tools are measured again; zero: never
}

// usage is what a tool uses.
type usage struct{ processes, memory, written int64 }

// group returns a control group for a tool; nil where there is none.
func (m *limiter) group(l Limits) *cgroup.Group {
	if l.Processes == 0 && l.Memory == 0 {
		return nil
	}
	if !m.opened { // a guard without limits makes no groups
		m.opened = true
		self, _ := readProcess(os.Getpid())
		if pool, err := cgroup.NewPool(self.id().String(), cgroup.Limits{Memory: allTools()}); err == nil {
			m.pool = pool
			m.processes, m.memory = pool.Limits()
		}
	}
	if m.pool == nil {
		return nil
	}
	g, err := m.pool.Take(cgroup.Limits{Processes: l.Processes, Memory: l.Memory})
	if err != nil {
		// Whoever has removed the directories removes others, too: the guard counts from now on.
		m.pool.Close()
		m.pool, m.processes, m.memory = nil, false, false
		return nil
	}
	return g
}

// allTools returns how many bytes all tools together may use, so that what is left is enough for muster and a shell.
func allTools() int64 {
	total := MachineMemory()
	return max(total/10*9, total-4<<30)
}

// close removes the control groups.
func (m *limiter) close() {
	if m.pool != nil {
		m.pool.Close()
	}
}

// encode returns the limits as they go to the guard.
func (l Limits) encode() string {
	return fmt.Sprint(l.Processes, l.Memory, l.FileSize, l.FreeDisk)
}

// parseLimits is the reverse of encode.
func parseLimits(text string) (l Limits) {
	_, _ = fmt.Sscan(text, &l.Processes, &l.Memory, &l.FileSize, &l.FreeDisk) // this program has written it
	return l
}

// fork starts a tool in its control group. A start that fails for the group's sake is tried once more without.
func (r *run) fork(path string, argv []string, attr *syscall.ProcAttr) (err error) {
	if r.group != nil {
		var leave func()
		if leave, err = r.group.Enter(); err == nil {
			attr.Sys.CgroupFD, attr.Sys.UseCgroupFD = r.group.FD()
			r.pid, err = syscall.ForkExec(path, argv, attr)
			leave()
		}
		if err == nil {
			return nil
		}
		r.group.Release()
		r.group, attr.Sys.UseCgroupFD = nil, false
	}
	r.pid, err = syscall.ForkExec(path, argv, attr)
	return err
}

// limitFiles gives this process the limit of files, which a tool that it starts has from its first moment on. The tool
// could lift it, so limit follows. lift takes it back: a guard writes no file that is so large.
func limitFiles(l Limits) (lift func()) {
	var was unix.Rlimit
	if l.FileSize <= 0 || unix.Getrlimit(unix.RLIMIT_FSIZE, &was) != nil {
		return func() {}
	}
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(uint64(l.FileSize), was.Max), Max: was.Max})
	return func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &was) }
}

// limit gives a tool that has just started what it inherits to all that it starts, and notes how much of its disk is
// free. What the tool has started meanwhile gets it, too: a sandbox starts a process at once.
func (g *guard) limit(r *run) {
	limits := map[int]uint64{}
	if n := r.limits.FileSize; n > 0 {
		limits[unix.RLIMIT_FSIZE] = uint64(n)
	}
	if r.limits.Processes > 0 && (r.group == nil || !g.limiter.processes) {
		// Who forks without end is faster than the guard counts. This limit counts all that the user runs, and does
		// not hold for root, but it lets the guard catch up.
		limits[unix.RLIMIT_NPROC] = uint64(entities() + r.limits.Processes)
	}
	if len(limits) > 0 {
		limitTree(r.pid, limits)
	}
	if r.limits.FreeDisk > 0 {
		_, r.freeDisk = disk(r.dir)
	}
	if r.limits != (Limits{}) && g.limiter.next.IsZero() {
		g.limiter.next = time.Now().Add(measurePause)
	}
}

// limitTree limits a process and those that it has started. A process is limited before its children are listed, so
// that those which come later inherit the limits.
func limitTree(pid int, limits map[int]uint64) {
	for resource, n := range limits {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
	}
	pids, _ := children(pid)
	for _, child := range pids {
		limitTree(child, limits)
	}
}

// HasControlGroups reports whether control groups can limit processes and memory here.
func HasControlGroups() bool {
	self, _ := readProcess(os.Getpid())
	pool, err := cgroup.NewPool(self.id().String()+".try", cgroup.Limits{})
	if err != nil {
		return false
	}
	defer pool.Close()
	processes, memory := pool.Limits()
	return processes && memory
}

// entities returns how many processes and threads the machine has: as many as one user can have.
func entities() int64 {
	data, _ := os.ReadFile("/proc/loadavg") // three averages, RUNNING/ALL, the last process
	if f := bytes.Fields(data); len(f) > 3 {
		_, all, _ := bytes.Cut(f[3], []byte("/"))
		return int64(number(all))
	}
	return 1 << 15
}

// reachedLimits returns which limits a tool that has ended has reached, and gives its group back.
func (r *run) reachedLimits() string {
	if r.group != nil {
		processes, memory := r.group.Reached()
		r.group.Release()
		if r.group = nil; processes {
			r.note(reachedProcesses)
		}
		if memory {
			r.note(reachedMemory)
		}
	}
	return strings.Join(r.reached, " ")
}

// measure kills the tools that use more than they may.
func (g *guard) measure() {
	g.limiter.next = time.Time{}
	use := sync.OnceValue(g.usage) // is measured when it is needed first
	filled := map[unix.Fsid]bool{}
	over := false // something is to be killed
	for _, r := range g.running {
		if r.limits == (Limits{}) || r.over {
			continue
		}
		g.limiter.next = time.Now().Add(measurePause)
		for _, limit := range r.exceeded(g.limiter, use) {
			r.end(limit)
		}
		if id, fills := r.fillsDisk(); fills {
			filled[id] = true
		}
		over = over || r.over
	}
	for id := range filled {
		if r := g.largestWriter(id, use()); r != nil {
			r.end(reachedDisk)
			over = true
		}
	}
	if !over {
		return
	}
	g.sweep()
	for _, r := range g.running { // what the dead have written until now is not counted against others
		_, r.freeDisk = disk(r.dir)
	}
}

// exceeded returns which limits a running tool has reached, of those that control groups keep or the guard counts.
func (r *run) exceeded(m limiter, use func() map[*run]usage) (limits []string) {
	var processes, memory bool
	if r.group != nil {
		processes, memory = r.group.Reached()
	}
	if r.limits.Processes > 0 && !(r.group != nil && m.processes) {
		processes = use()[r].processes > r.limits.Processes
	}
	if r.limits.Memory > 0 && !(r.group != nil && m.memory) {
		memory = use()[r].memory > r.limits.Memory
	}
	if processes {
		limits = append(limits, reachedProcesses)
	}
	if memory {
		limits = append(limits, reachedMemory)
	}
	return limits
}

// note notes that a tool has reached a limit.
func (r *run) note(limit string) {
	if !slices.Contains(r.reached, limit) {
		r.reached = append(r.reached, limit)
	}
}

// end orders that a running tool is killed, which has reached a limit. Its own children are killed at once: the first
// process of a sandbox takes all others with it, however many there are. They are the tool's until it reaps them, which
// it cannot while it is stopped.
func (r *run) end(limit string) {
	r.note(limit)
	r.over = true
	_ = unix.Kill(r.pid, unix.SIGSTOP)
	pids, _ := children(r.pid)
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// fillsDisk reports whether too little is free on the disk of a tool, and less than when it was last measured. A disk
// that stays as it is, or gets emptier, ends nothing.
func (r *run) fillsDisk() (id unix.Fsid, fills bool) {
	const noise = 1 << 20 // bytes that others write all the time
	if r.limits.FreeDisk == 0 {
		return id, false
	}
	id, free := disk(r.dir)
	fills = free < r.limits.FreeDisk && free+noise < r.freeDisk
	r.freeDisk = free
	return id, fills
}

// largestWriter returns the tool that has written most of those on a disk; nil where one of them is killed already, or
// there is none.
func (g *guard) largestWriter(id unix.Fsid, all map[*run]usage) (largest *run) {
	for _, r := range g.running {
		if on, _ := disk(r.dir); on != id || r.limits.FreeDisk == 0 {
			continue
		}
		if r.over {
			return nil
		}
		if largest == nil || all[r].written > all[largest].written {
			largest = r
		}
	}
	return largest
}

// A disk is known by what statfs says of it: two directories may lie on one disk, and a lane on another one than the
// repository.

// disk returns the identity of the disk with a directory, and how many bytes users may still write to it.
func disk(dir string) (id unix.Fsid, free int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return id, 0
	}
	return s.Fsid, int64(s.Bavail) * s.Bsize
}

// usage returns what the running tools use, with the processes that they have orphaned. A process that may belong to
// several tools is not counted.
func (g *guard) usage() map[*run]usage {
	tools := map[*run]usage{}
	all := descendants(os.Getpid())
	owners := g.ownersOf(all)
	for pid, t := range all {
		of := owners[topmost(all, t).pid]
		if len(of) != 1 || t.isDead() {
			continue
		}
		r := of[0]
		u := tools[r]
		u.processes++
		u.memory += ownMemory(pid)
		u.written += written(pid)
		tools[r] = u
	}
	return tools
}

// ownMemory returns how many bytes of memory a process has for itself.
func ownMemory(pid int) int64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	f := bytes.Fields(data)
	if len(f) < 3 {
		return 0
	}
	return int64(number(f[1])-number(f[2])) * int64(os.Getpagesize()) // resident without what is of files and shared
}

// written returns how many bytes a process and its dead children have written: to disks, and by calls, which is all
// that is known where files are in memory.
func written(pid int) (n int64) {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if string(name) == "write_bytes" || string(name) == "wchar" {
			n += int64(number(value))
		}
	}
	return n
}
