package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process as /proc shows it at one moment. Two of them that were read one after the other may contradict
// each other.
type process struct {
	pid, parent, group, session int
	state                       byte
	threads                     int
	system                      int64  // clock ticks that the kernel has worked for it and its dead children
	memory                      int64  // bytes, with what it shares with others
	started                     uint64 // clock ticks since boot: with pid, its identity
}

// isDead reports whether nothing of t runs any more. A first thread that has ended shows as a zombie while others go
// on.
func (t process) isDead() bool { return (t.state == 'Z' || t.state == 'X') && t.threads <= 1 }

// id tells the process from a later one with the same number, as guards and tags have it: PID.STARTED.
func (t process) id() string { return fmt.Sprintf("%d.%d", t.pid, t.started) }

// statFields returns the fields of proc_pid_stat(5) from the third on, and nothing when the process is gone. The second
// is the name of the program, in parentheses, and may contain anything.
func statFields(pid int) [][]byte {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
}

// readProcess reads /proc about a process; ok is false when it is gone.
func readProcess(pid int) (t process, ok bool) {
	// STATE PARENT GROUP SESSION ..., the times in the kernel are fields 15 and 17, the threads 20, the start time 22
	// and the pages in memory 24.
	f := statFields(pid)
	if len(f) < 22 || len(f[0]) != 1 {
		return t, false
	}
	t = process{pid: pid, state: f[0][0], parent: number(f[1]), group: number(f[2]), session: number(f[3])}
	t.threads = number(f[17])
	t.system = int64(number(f[12]) + number(f[14]))
	t.started, _ = strconv.ParseUint(string(f[19]), 10, 64)
	t.memory = int64(number(f[21]) * os.Getpagesize())
	return t, true
}

// number reads a number of /proc, which are all well formed.
func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// children lists the children of pid. It is exact for the caller's own, which stay until the caller reaps them, and
// for processes that are stopped; of others it may miss some.
func children(pid int) (pids []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	known := false
	for _, thread := range numbers(dir) {
		data, err := os.ReadFile(dir + strconv.Itoa(thread) + "/children")
		known = known || err == nil // the thread may have ended
		for _, f := range bytes.Fields(data) {
			pids = append(pids, number(f))
		}
	}
	if known {
		return pids
	}
	for child, t := range allProcesses() { // a kernel without that file
		if t.parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// numbers lists the entries of dir that are numbers.
func numbers(dir string) (ns []int) {
	entries, _ := os.ReadDir(dir) // those that were read, if it fails
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			ns = append(ns, n)
		}
	}
	return ns
}

// allProcesses returns all processes of the machine, by pid.
func allProcesses() map[int]process {
	all := map[int]process{}
	for _, pid := range numbers("/proc") {
		if t, ok := readProcess(pid); ok {
			all[pid] = t
		}
	}
	return all
}

// subtree returns the processes at and below one, also dead ones that were not reaped. What it misses because it
// was forked meanwhile, the caller's next call finds: a process that loses its parent becomes a child of the guard.
func subtree(top process) (list []process) {
	seen := map[int]bool{top.pid: true}
	for queue := []process{top}; len(queue) > 0; queue = queue[1:] {
		list = append(list, queue[0])
		for _, pid := range children(queue[0].pid) {
			if t, ok := readProcess(pid); ok && !seen[pid] {
				seen[pid], queue = true, append(queue, t)
			}
		}
	}
	return list
}

func isDescendant(all map[int]process, pid, root int) bool {
	for range len(all) {
		t, ok := all[pid]
		if !ok {
			return false
		}
		if t.parent == root {
			return true
		}
		pid = t.parent
	}
	return false
}

// has reports whether a file of a process in /proc, behind a NUL, has a text. One that may not be read has none.
func has(pid int, file, text string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	return err == nil && bytes.Contains(append([]byte{0}, data...), []byte(text))
}

// left returns what a program has left: the living processes that descend from it, are in its session or group, or
// have a tag that begins so, and the program itself. pid is -1 where only the tag is known. It looks at all processes
// of the machine, because the kernel gives those whose parent has died another one.
func left(pid int, tag string) (list []process) {
	all := allProcesses()
	for _, p := range all {
		isOf := p.pid == pid || p.session == pid || p.group == pid || isDescendant(all, p.pid, pid)
		if !p.isDead() && (isOf || has(p.pid, "environ", "\x00"+CallVar+"="+tag)) {
			list = append(list, p)
		}
	}
	return list
}

// killAll kills what victims returns, until it returns nothing or killLimit has passed, and returns how many are left.
//
// It stops processes before it kills them: a stopped process can neither fork nor reap, so no child appears unseen and
// no pid is used again. Then it asks for the victims again, because a parent's death moves its children elsewhere.
func killAll(victims func() []process) (left int) {
	// After stopRounds the known processes of a tree that forks faster than it is stopped are killed.
	const stopRounds = 16
	deadline := time.Now().Add(killLimit)
	stopped := map[string]bool{}
	pause := 100 * time.Microsecond
	for round := 0; ; round++ {
		list := victims()
		if len(list) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			return len(list)
		}
		// This goes on for as long as it finds new ones: a fork may have happened just before its parent was stopped.
		fresh := false
		for _, t := range list {
			if !stopped[t.id()] {
				stopped[t.id()], fresh = true, true
				_ = unix.Kill(t.pid, unix.SIGSTOP)
			}
		}
		if fresh && round < stopRounds {
			continue
		}
		for _, t := range list {
			_ = unix.Kill(t.pid, unix.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// KillAbandoned kills what a dead program has left of its tools, and returns how many processes it has found. It is for
// tools whose guard was killed at the same moment, and for a guard that was stopped (SIGSTOP) and does not end them.
//
// pid and started name the program, as some record has them. The record is not believed: what is killed has the tag of
// a program that is dead, or is below its guard. Neither a record that was changed nor a new process of that number
// makes KillAbandoned kill anything else.
func KillAbandoned(pid int, started uint64) (found int) {
	program := process{pid: pid, started: started}.id()
	if p, ok := readProcess(pid); pid <= 1 || started == 0 || ok && p.id() == program && !p.isDead() {
		return 0
	}
	found = len(abandoned(program + "."))
	killAll(func() []process { return abandoned(program + ".") })
	return found
}

// abandoned returns what a dead program has left, and nothing where this process is a part of it. tag begins its tags.
func abandoned(tag string) (list []process) {
	all, self, guard := allProcesses(), os.Getpid(), -1
	for pid := range all {
		if has(pid, "cmdline", "\x00"+guardWord+"\x00"+tag) && isHere(pid) {
			guard = pid // of several the next call finds another
		}
	}
	for _, p := range left(guard, tag) {
		if p.pid == self || isDescendant(all, self, p.pid) {
			return nil
		}
		if isHere(p.pid) {
			list = append(list, p)
		}
	}
	return list
}

// isHere reports whether a process has its number in the table of processes that this one sees, and no other in a
// container: there the number of a program is another's.
func isHere(pid int) bool { return has(pid, "status", fmt.Sprintf("\nNSpid:\t%d\n", pid)) }

// wait waits for the program to end and kills what it left behind. Only then is the program reaped, because until then
// its pid cannot be another's.
func (t *tree) wait(p *os.Process) (*os.ProcessState, error) {
	for unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = t.kill()
	defer t.setReaped()
	return p.Wait()
}

// sweep kills what is found of the tree. A process that has left the program's session, its environment and its
// descendants survives.
func (t *tree) sweep() { killAll(func() []process { return left(t.pid, t.tag) }) }

// Parent returns the parent of a process, or 0 when it is not known.
func Parent(pid int) int {
	t, _ := readProcess(pid)
	return t.parent
}

// StartTime returns when a process started, in clock ticks since the system did, or 0 when that is not known. Together
// with the number it is the identity of a process: a later one with the same number has another.
func StartTime(pid int) uint64 {
	t, _ := readProcess(pid)
	return t.started
}

// marker marks the processes of a call by a resource limit, which they inherit: each call has its own limit on the
// bytes of POSIX message queues, a few below what the system allows. Hardly any program uses those, and no mark takes
// more than half of them away. All marks are below the marker, and 0 makes none.
type marker uint64

// newMarker returns a marker for this system: 0 where the limit is too low to tell calls apart.
func newMarker() marker {
	const fewest = 2000  // marks, so that calls which run at the same time have different ones
	const usual = 819200 // the limit of most systems: the hard one may be higher, or infinite
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &l) != nil || l.Max/2 < fewest {
		return 0
	}
	return marker(min(l.Max, usual))
}

// set gives this process the mark of a call, and so what it starts until unset. Guards that run inside each other begin
// at different places.
func (m *marker) set(call uint64) (mark uint64, unset func()) {
	top := uint64(*m)
	if top == 0 {
		return 0, func() {}
	}
	mark = top - 1 - (call+uint64(os.Getpid())*7919)%(top/2-1)
	unset, err := limitOwn(unix.RLIMIT_MSGQUEUE, mark)
	if err != nil { // not allowed here: without marks, then
		*m = 0
	}
	return mark, unset
}

func (m marker) read(pid int) (mark uint64, ok bool) {
	var l unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &l) != nil {
		return 0, false
	}
	return l.Cur, l.Cur < uint64(m) && l.Cur >= uint64(m-m/2)
}

// limitOwn gives this process a soft limit, which what it starts inherits, until lift. 0 is none.
func limitOwn(resource int, n uint64) (lift func(), err error) {
	var before unix.Rlimit
	if n == 0 {
		return func() {}, nil
	}
	if err := unix.Prlimit(0, resource, nil, &before); err != nil {
		return func() {}, err
	}
	own := unix.Rlimit{Cur: min(n, before.Max), Max: before.Max}
	return func() { _ = unix.Prlimit(0, resource, &before, nil) }, unix.Prlimit(0, resource, &own, nil)
}
