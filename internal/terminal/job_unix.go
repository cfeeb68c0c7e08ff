//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasJobControl reports whether anybody could continue the process after Ctrl-Z. The kernel ignores a stop in the
// process group of the session's leader, and bubbletea would then wait forever.
func hasJobControl() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}

// IsForeground reports whether this process is in the foreground of a terminal. The kernel stops one in the background
// that sets the mode of the terminal or reads from it.
func IsForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// HasInput reports whether a read of the terminal would return at once.
func HasInput(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
