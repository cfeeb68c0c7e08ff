//go:build !linux && !darwin

package workspace

import "os"

// parent returns the parent of this process, or 0 for any other one: this system tells no more.
func parent(pid int) int {
	if pid == os.Getpid() {
		return os.Getppid()
	}
	return 0
}
