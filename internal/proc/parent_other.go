//go:build !linux && !darwin

package proc

import "os"

// Parent returns the parent of this process, or 0 for any other one: this system tells no more.
func Parent(pid int) int {
	if pid == os.Getpid() {
		return os.Getppid()
	}
	return 0
}
