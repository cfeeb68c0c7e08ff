package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// KillAbandoned kills what a dead program has left of its guards and tools, and returns how many processes it killed. A
// guard ends with its program, and its tools with it, unless somebody has stopped it or killed it at the same moment.
//
// pid and started name the program, as some record has them. The record is not believed: what is killed are guards
// whose own arguments name that program, what is below them, and what has the tag of such a guard. So neither a number
// that is another process's by now nor a record that somebody has changed makes KillAbandoned kill anything else.
func KillAbandoned(pid int, started uint64) (killed int) {
	program := processID{pid, started}
	if p, ok := readProcess(pid); pid <= 1 || started == 0 || ok && p.id() == program && !p.isDead() {
		return 0
	}
	seen := map[processID]bool{}
	killAll(func() []process {
		list := abandoned(program)
		for _, p := range list {
			seen[p.id()] = true
		}
		return list
	}, killLimit)
	return len(seen)
}

// abandoned returns what a dead program has left, and nothing where this process is a part of it.
func abandoned(program processID) (list []process) {
	tag := program.String() + "."
	for _, p := range left(-1, tag) {
		if isHere(p.pid) {
			list = append(list, p)
		}
	}
	all := allProcesses()
	for _, p := range all {
		if isGuardOf(p.pid, program) && isHere(p.pid) {
			list = append(list, left(p.pid, tag)...)
		}
	}
	self := os.Getpid()
	if slices.ContainsFunc(list, func(p process) bool { return p.pid == self || isDescendant(all, self, p.pid) }) {
		return nil
	}
	return list
}

// isGuardOf reports whether a process is a guard whose arguments name the program.
func isGuardOf(pid int, program processID) bool {
	args, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.HasSuffix(args, []byte("\x00"+guardWord+"\x00"+program.String()+"\x00"))
}

// isHere reports whether a process has only the number that this process sees. One in a container has another one
// there, and its programs are known by that.
func isHere(pid int) bool {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, _ := bytes.Cut(status, []byte("\nNSpid:"))
	numbers, _, _ := bytes.Cut(rest, []byte("\n"))
	return len(bytes.Fields(numbers)) == 1
}
