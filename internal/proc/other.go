//go:build !linux

package proc

// newLauncher returns a launcher without a guard: this system has no subreapers.
func newLauncher() (Launcher, error) { return new(groups), nil }

// GuardMain is called first thing in main. This system has no subreapers, so there is never a guard.
func GuardMain() {}

// KillAbandoned does nothing: without a guard nothing tells which processes a program has left.
func KillAbandoned(int, uint64) (killed int) { return 0 }

// StartTime returns 0: it is not known here.
func StartTime(int) uint64 { return 0 }

// HideEnvironment does nothing: this system shows the environment of a process to its user in no file, and its means to
// read the memory of others are not limited here.
func HideEnvironment([]string) {}

// HasControlGroups returns false: only Linux has control groups.
func HasControlGroups() bool { return false }

// MachineMemory returns 0: how much there is cannot be told here.
func MachineMemory() int64 { return 0 }
