//go:build unix

package terminal

import "golang.org/x/sys/unix"

// jobControl says whether someone could continue us after Ctrl-Z: the kernel ignores a stop in the group of the
// session's leader, and bubbletea would wait for ever.
func jobControl() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}
