package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// task is a process as /proc shows it at one moment.
type task struct {
	pid, parent, group, session int
	state                       byte
	threads                     int
	born                        uint64 // clock ticks since boot: with pid, its identity
}

// dead tells whether nothing of t runs any more. A first thread that has ended shows as a zombie while others go on.
func (t task) dead() bool { return (t.state == 'Z' || t.state == 'X') && t.threads <= 1 }

// identity tells a process from a later one with the same number.
type identity struct {
	pid  int
	born uint64
}

func (t task) identity() identity { return identity{t.pid, t.born} }

// inspect reads one process; ok is false when it is gone.
func inspect(pid int) (t task, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return t, false
	}
	// pid (name) state parent group session ..., threads is field 20, born 22. The name may contain anything, so count from its end.
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return t, false
	}
	f := bytes.Fields(data[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return t, false
	}
	t = task{pid: pid, state: f[0][0], parent: number(f[1]), group: number(f[2]), session: number(f[3])}
	t.threads = number(f[17])
	t.born, _ = strconv.ParseUint(string(f[19]), 10, 64)
	return t, true
}

func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// children lists the children of pid. It is exact for the caller's own, which stay until the caller reaps them, and
// for processes that are stopped; of others it may miss some. known is false where the kernel does not tell.
func children(pid int) (pids []int, known bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	for _, thread := range numbers(dir) {
		data, err := os.ReadFile(dir + strconv.Itoa(thread) + "/children")
		if err != nil {
			continue // the thread has ended, or the kernel has no such file
		}
		known = true
		for _, f := range bytes.Fields(data) {
			pids = append(pids, number(f))
		}
	}
	return pids, known
}

// numbers lists the entries of dir that are numbers.
func numbers(dir string) (ns []int) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			ns = append(ns, n)
		}
	}
	return ns
}

// everything is all processes of the machine, by pid.
func everything() map[int]task {
	all := map[int]task{}
	for _, pid := range numbers("/proc") {
		if t, ok := inspect(pid); ok {
			all[pid] = t
		}
	}
	return all
}

// descendants is everything below root, by pid, without root. What it misses, because it forked meanwhile, is found by
// the caller's next look: whoever loses its parent becomes a child of root.
func descendants(root int) map[int]task {
	found := map[int]task{}
	if _, known := children(root); !known {
		all := everything()
		for pid := range all {
			if under(all, pid, root) {
				found[pid] = all[pid]
			}
		}
		return found
	}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		pids, _ := children(queue[0])
		for _, pid := range pids {
			if _, seen := found[pid]; seen {
				continue
			}
			if t, ok := inspect(pid); ok {
				found[pid] = t
				queue = append(queue, pid)
			}
		}
	}
	return found
}

// under tells whether pid descends from root.
func under(all map[int]task, pid, root int) bool {
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

// tagged tells whether pid was started with the environment entry want, "NAME=value". With prefix, an entry that begins
// so is enough. A process whose environment may not be read is not tagged.
func tagged(pid int, want string, prefix bool) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for len(env) > 0 {
		var entry []byte
		entry, env, _ = bytes.Cut(env, []byte{0})
		if string(entry) == want || prefix && bytes.HasPrefix(entry, []byte(want)) {
			return true
		}
	}
	return false
}

// exterminate kills what condemned returns, until it returns nothing or limit has passed, and returns how many are left.
//
// It stops before it kills: what is stopped can neither fork nor reap, so nobody is born behind its back and no number
// is used again. Then it looks again, because a parent's death makes its children visible elsewhere.
func exterminate(condemned func() []task, limit time.Duration) (left int) {
	const rounds = 16 // of stopping: whoever forks faster than that is killed as far as it is known, again and again
	deadline := time.Now().Add(limit)
	stopped := map[identity]bool{}
	pause := 100 * time.Microsecond
	for round := 0; ; round++ {
		list := condemned()
		if len(list) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			return len(list)
		}
		fresh := false
		for _, t := range list {
			if !stopped[t.identity()] {
				stopped[t.identity()], fresh = true, true
				_ = unix.Kill(t.pid, unix.SIGSTOP)
			}
		}
		if fresh && round < rounds {
			continue
		}
		for _, t := range list {
			_ = unix.Kill(t.pid, unix.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}
