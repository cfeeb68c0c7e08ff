//go:build unix

package torture

import (
	"os"
	"syscall"
)

func halt(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// wasKilled reports whether kill -9 ended a process.
func wasKilled(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}
