package detach

import "golang.org/x/sys/unix"

// dup makes to the same file as from.
func dup(from, to int) error { return unix.Dup3(from, to, 0) } // some kinds of processor have no dup2
