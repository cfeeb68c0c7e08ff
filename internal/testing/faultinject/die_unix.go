//go:build unix

package faultinject

import (
	"os"
	"syscall"
	"time"
)

// die kills the process as kill -9 does: nothing is flushed, no deferred call runs.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal is there
}

// halt stops the process until somebody continues it.
func halt() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(20 * time.Millisecond) // another thread may take the signal, and this one go on until it is stopped too
}
