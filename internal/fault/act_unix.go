//go:build unix

package fault

import (
	"os"
	"syscall"
)

// die kills the process as kill -9 does: nothing is flushed, no deferred call runs.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal is there
}

// halt stops the process until somebody continues it.
func halt() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
