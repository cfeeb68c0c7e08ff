package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	// made is what it and its dead children have made on disks: bytes, and instead of files, which may be empty, the
	// time that the kernel has worked for them.
	made room
	all  []process
}

// MachineMemory returns how many bytes of memory the machine has; 0: it cannot be told.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit) //nolint:unconvert // the types differ between architectures
}

// HasControlGroups reports whether control groups can limit processes and memory here.
func HasControlGroups() bool {
	pool := newPool(".try")
	defer pool.Close()
	return pool != nil
}

// newPool returns the control groups of this process, nil where it may make none.
func newPool(suffix string) *cgroup.Pool {
	self, _ := readProcess(os.Getpid())
	total := MachineMemory() // what is left is enough for muster and a shell
	return cgroup.NewPool(self.id()+suffix, max(total/10*9, total-4<<30))
}

// limit gives a tool that has just started what it inherits to all that it starts, and notes how much of its disk is
// free. What the tool has started meanwhile gets it, too: a sandbox starts a process at once.
func (g *guard) limit(r *run) {
	limits := map[int]uint64{}
	if n := r.Limits.FileSize; n > 0 {
		limits[unix.RLIMIT_FSIZE] = uint64(n)
	}
	if r.Limits.Processes > 0 && r.group == nil {
		// Who forks without end is faster than the guard counts. This limit counts all that the user runs, and does
		// not hold for root, but it lets the guard catch up.
		limits[unix.RLIMIT_NPROC] = uint64(entities() + r.Limits.Processes)
	}
	limitTree(r.pid, limits)
	if r.Limits.FreeDisk > 0 {
		_, r.free, _ = r.disk()
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

// measure kills the tools that use more than they may, and what the last sweep could not kill.
func (g *guard) measure() {
	use := sync.OnceValue(g.usage) // is measured when it is needed first
	killed := false
	for _, r := range g.running {
		if !r.over && r.exceeded(use) {
			r.kill()
			killed = true
		}
	}
	for _, r := range g.running {
		id, what, fills := r.fillsDisk()
		if !fills || r.over {
			continue
		}
		if largest := g.largestWriter(id, what, use()); largest != nil {
			largest.note("it was killed, because less than %d MB, or one file in %d, is free on the disk (setting "+
				"resources.free_disk): remove what is not needed", largest.Limits.FreeDisk>>20, leastFiles)
			largest.kill()
			killed = true
		}
	}
	if !killed && g.left == 0 {
		return
	}
	g.sweep()
	for _, r := range g.running { // what the dead have written until now is not counted against others
		_, r.free, _ = r.disk()
	}
}

// exceeded reports whether a tool has reached limits, of those that its control group keeps or the guard counts, and
// notes them.
func (r *run) exceeded(use func() map[*run]usage) bool {
	var processes, memory bool
	if r.group != nil {
		processes, memory = r.group.Reached()
	} else if r.Limits.Processes > 0 || r.Limits.Memory > 0 {
		u := use()[r]
		processes = r.Limits.Processes > 0 && u.processes > r.Limits.Processes
		memory = r.Limits.Memory > 0 && u.memory > r.Limits.Memory && ownMemory(u.all) > r.Limits.Memory
	}
	if processes {
		r.note("it has reached its limit of %d processes (setting resources.processes)", r.Limits.Processes)
	}
	if memory {
		r.note("it has reached its limit of %d MB of memory (setting resources.memory)", r.Limits.Memory>>20)
	}
	return processes || memory
}

// note notes that a tool has reached a limit. Whoever reads its output is told: most programs say nothing that would
// explain it.
func (r *run) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.reached, text) {
		r.reached = append(r.reached, text)
	}
}

// room is an amount of what disks have: bytes, and files.
type room [2]int64

const ofBytes, ofFiles = 0, 1

// disk returns the identity of the disk with the directory of a tool, what users may still put there, and how much of
// that stays free. A disk without a limit of files has 0 and needs 0.
func (r *run) disk() (id unix.Fsid, free, least room) {
	var s unix.Statfs_t
	if unix.Statfs(r.Dir, &s) != nil {
		return id, room{}, room{}
	}
	return s.Fsid, room{int64(s.Bavail) * s.Bsize, int64(s.Ffree)}, room{r.Limits.FreeDisk, int64(s.Files) / leastFiles}
}

// fillsDisk reports whether too little is free on the disk of a tool, and less than when it was last measured; what is
// the index in room of what is missing. A disk that stays as it is, or gets emptier, ends nothing.
func (r *run) fillsDisk() (id unix.Fsid, what int, fills bool) {
	noise := room{1 << 20, 100} // what others take all the time
	if r.Limits.FreeDisk == 0 {
		return id, 0, false
	}
	id, free, least := r.disk()
	for i := range free {
		if !fills && free[i] < least[i] && free[i]+noise[i] < r.free[i] {
			what, fills = i, true
		}
	}
	r.free = free
	return id, what, fills
}

// largestWriter returns the tool that has made most of what is missing on a disk. It is nil where one of them is killed
// already, or there is none.
func (g *guard) largestWriter(id unix.Fsid, what int, all map[*run]usage) (largest *run) {
	for _, r := range g.running {
		if on, _, _ := r.disk(); on != id || r.Limits.FreeDisk == 0 {
			continue
		}
		if r.over {
			return nil
		}
		if largest == nil || all[r].made[what] > all[largest].made[what] {
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
		u := tools[r]
		// Children first: what one has written is its parent's when that has waited for it.
		for _, t := range slices.Backward(subtree(top)) {
			u.all = append(u.all, t)
			u.processes += int64(max(t.threads, 1))
			u.memory += t.memory
			io := procNumbers(t.pid, "io") // wchar is all that is known where files are in memory
			u.made[ofBytes] += io["write_bytes"] + io["wchar"]
			u.made[ofFiles] += t.system
		}
		tools[r] = u
	}
	return tools
}

// ownMemory returns how many bytes of memory processes use, without files. What they share counts once. Of one whose
// memory may not be looked at, all counts.
func ownMemory(all []process) (n int64) {
	for _, t := range all {
		m := procNumbers(t.pid, "smaps_rollup") // in kB
		if own, ok := m["Pss_Anon"]; ok {
			n += (own + m["Pss_Shmem"]) << 10
		} else {
			n += t.memory
		}
	}
	return n
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
