//go:build unix

package terminal

import "golang.org/x/sys/unix"

// hasJobControl reports whether anybody could continue the process after Ctrl-Z. The kernel ignores a stop in the
// process group of the session's leader, and bubbletea would then wait forever.
func hasJobControl() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}
