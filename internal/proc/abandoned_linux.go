package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// KillAbandoned kills a guard whose program has died, with all its tools, and returns how many processes it killed.
// Such a guard ends by itself, unless somebody has stopped it; and when somebody has killed it together with its
// program, what its tools had started lives on.
//
// pid and started name the guard, as some record has them. The record is not believed: what is killed is a guard whose
// own arguments name a program that is dead, and what has the tag of a guard that is dead. So neither a number that is
// another process's by now nor a record that somebody has changed makes KillAbandoned kill anything else.
func KillAbandoned(pid int, started uint64) (killed int) {
	if pid <= 1 || started == 0 {
		return 0
	}
	seen := map[processID]bool{}
	killAll(func() []process {
		list := abandoned(processID{pid, started})
		for _, p := range list {
			seen[p.id()] = true
		}
		return list
	}, killLimit)
	return len(seen)
}

// abandoned returns the guard and what descends from it or has its tag, and nothing while the guard's program lives.
// It returns nothing either where this process is one of them.
func abandoned(guard processID) (list []process) {
	all := allProcesses()
	if g, ok := all[guard.pid]; ok && g.started == guard.started && !g.isDead() {
		program, isGuard := programOf(guard.pid)
		if p, ok := all[program.pid]; !isGuard || ok && p.started == program.started && !p.isDead() {
			return nil
		}
		list = append(list, g)
	}
	// A tag tells a guard by a number, which counts in one table of processes. Another container has another table.
	space, _ := os.Readlink("/proc/self/ns/pid")
	tag := CallVar + "=" + guardTag(guard.pid, guard.started)
	for pid, p := range all {
		if p.isDead() || pid == guard.pid {
			continue
		}
		below := len(list) > 0 && list[0].pid == guard.pid && isDescendant(all, pid, guard.pid)
		if !below && hasTag(pid, tag, true) {
			own, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
			below = err == nil && own == space
		}
		if below {
			list = append(list, p)
		}
	}
	self := os.Getpid()
	if slices.ContainsFunc(list, func(p process) bool { return p.pid == self || isDescendant(all, self, p.pid) }) {
		return nil
	}
	return list
}

// programOf returns the program whose guard a process is, as the guard's arguments say; ok is false when the process is
// no guard.
func programOf(pid int) (program processID, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	args := bytes.Split(bytes.TrimSuffix(data, []byte{0}), []byte{0})
	if err != nil || len(args) != 3 || string(args[1]) != guardWord {
		return program, false
	}
	number, started, _ := bytes.Cut(args[2], []byte("."))
	program.pid, err = strconv.Atoi(string(number))
	if err != nil {
		return program, false
	}
	program.started, err = strconv.ParseUint(string(started), 10, 64)
	return program, err == nil
}
