//go:build !linux

package proc

// HasControlGroups returns false: only Linux has control groups.
func HasControlGroups() bool { return false }
