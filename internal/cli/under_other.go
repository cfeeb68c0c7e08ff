//go:build !linux && !darwin

package cli

import "os"

// parent is the parent of a process, 0 when it is not known: this system tells only a process's own.
func parent(pid int) int {
	if pid == os.Getpid() {
		return os.Getppid()
	}
	return 0
}
