package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster/internal/cgroup"
)

// measurePause is how often the guard looks at what its tools use. A disk that takes 2 GB a second takes 200 MB
// meanwhile.
const measurePause = 100 * time.Millisecond

// usage is what a tool uses.
type usage struct {
	processes int64 // with their threads
	memory    int64 // bytes, at most: what several processes share counts for each
	written   int64 // bytes
	system    int64 // time that the kernel has worked for it
	pids      []int
}

// openPool looks for control groups.
func (g *guard) openPool() {
	self, _ := readProcess(os.Getpid())
	total := MachineMemory() // what is left is enough for muster and a shell
	g.pool, _ = cgroup.NewPool(self.id().String(), max(total/10*9, total-4<<30))
}

// closePool removes the control groups.
func (g *guard) closePool() {
	if g.pool != nil {
		g.pool.Close()
	}
}

// newGroup returns a control group for a tool; nil where there is none.
func (g *guard) newGroup(l Limits) *cgroup.Group {
	if g.pool == nil || l.Processes == 0 && l.Memory == 0 {
		return nil
	}
	group, err := g.pool.New(cgroup.Limits{Processes: l.Processes, Memory: l.Memory})
	if err != nil { // the guard counts
		return nil
	}
	return group
}

// HasControlGroups reports whether control groups can limit processes and memory here.
func HasControlGroups() bool {
	self, _ := readProcess(os.Getpid())
	pool, err := cgroup.NewPool(self.id().String()+".try", 0)
	if err == nil {
		pool.Close()
	}
	return err == nil
}

// parseLimits is the reverse of String.
func parseLimits(text string) (l Limits) {
	_, _ = fmt.Sscan(text, &l.Processes, &l.Memory, &l.FileSize, &l.FreeDisk) // this program has written it
	return l
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
	if r.limits.Processes > 0 && r.group == nil {
		// Who forks without end is faster than the guard counts. This limit counts all that the user runs, and does
		// not hold for root, but it lets the guard catch up.
		limits[unix.RLIMIT_NPROC] = uint64(entities() + r.limits.Processes)
	}
	if len(limits) > 0 {
		limitTree(r.pid, limits)
	}
	if r.limits.FreeDisk > 0 {
		_, r.free = disk(r.dir)
	}
}

// limitTree limits a process and those that it has started. A process is limited before its children are listed, so
// that those which come later inherit the limits.
func limitTree(pid int, limits map[int]uint64) {
	for resource, n := range limits {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
	}
	for _, child := range children(pid) {
		limitTree(child, limits)
	}
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

// reachedLimits returns which limits a tool that has ended has reached, and removes its group.
func (r *run) reachedLimits() string {
	if r.group != nil {
		r.exceeded(nil)
		r.group.Remove()
		r.group = nil
	}
	return strings.Join(r.reached, " ")
}

// hasLimits reports whether a running tool has limits.
func (g *guard) hasLimits() bool {
	for _, r := range g.running {
		if r.limits != (Limits{}) {
			return true
		}
	}
	return false
}

// measure kills the tools that use more than they may.
func (g *guard) measure() {
	use := sync.OnceValue(g.usage) // is measured when it is needed first
	full := map[unix.Fsid]lack{}
	over := false // something is to be killed
	for _, r := range g.running {
		if r.limits == (Limits{}) || r.over {
			continue
		}
		if r.exceeded(use) {
			r.kill()
		} else if id, what := r.fillsDisk(); what != nothing {
			full[id] = what
		}
		over = over || r.over
	}
	for id, what := range full {
		if r := g.largestWriter(id, what, use()); r != nil {
			r.note(reachedDisk)
			r.kill()
			over = true
		}
	}
	if !over {
		return
	}
	g.sweep()
	for _, r := range g.running { // what the dead have written until now is not counted against others
		_, r.free = disk(r.dir)
	}
}

// exceeded reports whether a tool has reached limits, of those that its control group keeps or the guard counts, and
// notes them.
func (r *run) exceeded(use func() map[*run]usage) bool {
	var processes, memory bool
	if r.group != nil {
		processes, memory = r.group.Reached()
	} else if r.limits.Processes > 0 || r.limits.Memory > 0 {
		u := use()[r]
		processes = r.limits.Processes > 0 && u.processes > r.limits.Processes
		memory = r.limits.Memory > 0 && u.memory > r.limits.Memory && ownMemory(u.pids) > r.limits.Memory
	}
	if processes {
		r.note(reachedProcesses)
	}
	if memory {
		r.note(reachedMemory)
	}
	return processes || memory
}

// note notes that a tool has reached a limit.
func (r *run) note(limit string) {
	if !slices.Contains(r.reached, limit) {
		r.reached = append(r.reached, limit)
	}
}

// A disk is known by what statfs says of it: two directories may lie on one disk, and a lane on another one than the
// repository.

// room is what is free on a disk.
type room struct {
	bytes int64
	// files is how many more files there can be, and allFiles with those that are there; 0: as many as fit.
	files, allFiles int64
}

// disk returns the identity of the disk with a directory, and what users may still put there.
func disk(dir string) (id unix.Fsid, free room) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return id, room{}
	}
	return s.Fsid, room{int64(s.Bavail) * s.Bsize, int64(s.Ffree), int64(s.Files)}
}

// lack is what a disk has too little of.
type lack int

const (
	nothing lack = iota
	ofBytes
	ofFiles
)

// fillsDisk reports of what too little is free on the disk of a tool, and less than when it was last measured. A disk
// that stays as it is, or gets emptier, ends nothing.
func (r *run) fillsDisk() (id unix.Fsid, what lack) {
	const (
		noise      = 1 << 20 // bytes that others write all the time
		noiseFiles = 100
	)
	if r.limits.FreeDisk == 0 {
		return id, nothing
	}
	id, free := disk(r.dir)
	switch {
	case free.bytes < r.limits.FreeDisk && free.bytes+noise < r.free.bytes:
		what = ofBytes
	case free.files < free.allFiles/leastFiles && free.files+noiseFiles < r.free.files:
		what = ofFiles
	}
	r.free = free
	return id, what
}

// largestWriter returns the tool that has written most of those on a disk, or, where files are missing, for which the
// kernel has worked most: empty files are no bytes. It is nil where one of them is killed already, or there is none.
func (g *guard) largestWriter(id unix.Fsid, what lack, all map[*run]usage) (largest *run) {
	amount := func(r *run) int64 {
		if what == ofFiles {
			return all[r].system
		}
		return all[r].written
	}
	for _, r := range g.running {
		if on, _ := disk(r.dir); on != id || r.limits.FreeDisk == 0 {
			continue
		}
		if r.over {
			return nil
		}
		if largest == nil || amount(r) > amount(largest) {
			largest = r
		}
	}
	return largest
}

// usage returns what the running tools use, with the processes that they have orphaned. A process that may belong to
// several tools is not counted.
func (g *guard) usage() map[*run]usage {
	tools := map[*run]usage{}
	for _, pid := range children(os.Getpid()) {
		top, ok := readProcess(pid)
		r, _ := g.owner(top)
		if !ok || r == nil {
			continue
		}
		all := descendants(pid)
		all[pid] = top
		u := tools[r]
		for pid, t := range all {
			if t.isDead() {
				continue
			}
			u.processes += int64(max(t.threads, 1))
			u.memory += resident(pid)
			u.written += written(pid)
			u.system += t.system
			u.pids = append(u.pids, pid)
		}
		tools[r] = u
	}
	return tools
}

// resident returns how many bytes of memory a process uses, with what it shares with others.
func resident(pid int) int64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	f := bytes.Fields(data)
	if len(f) < 2 {
		return 0
	}
	return int64(number(f[1])) * int64(os.Getpagesize())
}

// ownMemory returns how many bytes of memory processes use, without files. What they share counts once. Of one whose
// memory may not be looked at, all counts.
func ownMemory(pids []int) (n int64) {
	for _, pid := range pids {
		m := procNumbers(pid, "smaps_rollup")
		own, ok := m["Pss_Anon"]
		if !ok {
			n += resident(pid)
			continue
		}
		n += (own + m["Pss_Shmem"]) << 10 // they are in kB
	}
	return n
}

// written returns how many bytes a process and its dead children have written: to disks, and by calls, which is all
// that is known where files are in memory.
func written(pid int) int64 {
	m := procNumbers(pid, "io")
	return m["write_bytes"] + m["wchar"]
}

// procNumbers reads a file in /proc about a process, whose lines are a name, a colon, a number and perhaps a unit.
func procNumbers(pid int, file string) map[string]int64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	m := map[string]int64{}
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if f := bytes.Fields(value); len(f) > 0 {
			m[string(name)] = int64(number(f[0]))
		}
	}
	return m
}
