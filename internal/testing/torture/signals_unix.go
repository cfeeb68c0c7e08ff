//go:build unix

package torture

import (
	"os"
	"syscall"
)

func possible() error { return nil }

func halt(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// killed reports whether kill -9 ended a process.
func killed(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}
