//go:build unix

package proc

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewSession gives a program a session of its own: a process group and no terminal.
func NewSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// tree is a program that was started and what can be found of its descendants.
type tree struct {
	pid int    // also the number of its session and process group
	tag string // is in the environment of its descendants

	mu     sync.Mutex
	reaped bool // its pid may be another's by now
}

// newTree returns the tree of a program that has just started.
func newTree(p *os.Process, tag string) (*tree, error) { return &tree{pid: p.Pid, tag: tag}, nil }

// kill kills the process group, and what the sweep finds outside of it.
func (t *tree) kill() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return nil
	}
	t.sweep()
	_ = syscall.Kill(-t.pid, syscall.SIGKILL) // it fails where the group is empty, or what is left is another user's
	return nil
}

// setReaped notes that the program was reaped: from now on its pid may be another's and must not be killed.
func (t *tree) setReaped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
}

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
