//go:build unix && !linux

package detach

import "golang.org/x/sys/unix"

// dup makes to the same file as from.
func dup(from, to int) error { return unix.Dup2(from, to) }
