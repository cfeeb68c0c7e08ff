package proc

import (
	"os"
	"strconv"
)

// KillAbandoned kills what a dead program has left of its tools, and returns how many processes it has found. A guard
// ends when its program dies, with its tools; this is for tools whose guard was killed at the same moment.
//
// pid and started name the program, as some record has them. The record is not believed: what is killed has the tag of
// a program that is dead. So neither a number that is another process's by now nor a record that somebody has changed
// makes KillAbandoned kill anything else.
func KillAbandoned(pid int, started uint64) (found int) {
	program := process{pid: pid, started: started}.id()
	if p, ok := readProcess(pid); pid <= 1 || started == 0 || ok && p.id() == program && !p.isDead() {
		return 0
	}
	found = len(abandoned(program))
	killAll(func() []process { return abandoned(program) }, killLimit)
	return found
}

// abandoned returns what a dead program has left, and nothing where this process is a part of it.
func abandoned(program string) (list []process) {
	all, self := allProcesses(), os.Getpid()
	// A program's number counts in one table of processes. Another container has another table.
	space, _ := os.Readlink("/proc/self/ns/pid")
	for _, p := range left(-1, program+".") {
		if p.pid == self || isDescendant(all, self, p.pid) {
			return nil
		}
		if own, err := os.Readlink("/proc/" + strconv.Itoa(p.pid) + "/ns/pid"); err == nil && own == space {
			list = append(list, p)
		}
	}
	return list
}
