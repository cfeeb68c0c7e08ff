//go:build unix

package proc

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// apart gives a program a session of its own: a process group and no terminal.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// status is the exit status as a shell says it.
func status(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// tree is a program that was started and what can be found of its descendants.
type tree struct {
	pid int
	tag string

	mu     sync.Mutex
	reaped bool // its number may be another's by now
}

func newTree(p *os.Process, tag string) (*tree, error) { return &tree{pid: p.Pid, tag: tag}, nil }

// kill kills the process group, and what the sweep finds outside it.
func (t *tree) kill() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return nil
	}
	t.sweep()
	if err := syscall.Kill(-t.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// over says that the program was reaped: from now on its number means nothing.
func (t *tree) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
}
