//go:build unix

package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lowered is the nice value of what has a lower priority.
const lowered = 10

// LowerPriority lets a program that was just started, and all that it will start, run when nothing else wants to. It is
// the leader of a process group, so what it has started in the meantime is lowered too. Where the system does not allow
// it, the program has the priority of all others.
func LowerPriority(pid int) {
	_ = unix.Setpriority(unix.PRIO_PGRP, pid, lowered)
	// On Linux sessions may be scheduled against each other as groups, and then nice values count within one of them
	// only. A group has a value of its own. The file is missing where there are no such groups.
	if file, err := os.OpenFile(fmt.Sprintf("/proc/%d/autogroup", pid), os.O_WRONLY, 0); err == nil {
		_, _ = fmt.Fprint(file, lowered)
		_ = file.Close()
	}
}
