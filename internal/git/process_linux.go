package git

import (
	"syscall"

	"golang.org/x/sys/unix"

	"muster/internal/proc"
)

// newAttributes keeps git out of the terminal's session: a Ctrl-C is for muster, which lets git finish its
// last write. With diesWithUs the kernel asks git to end when muster dies: a git of a killed muster must not go on
// beside the next muster, which undoes what the killed one was doing.
func newAttributes(diesWithUs bool) *syscall.SysProcAttr {
	a := proc.NewSession()
	if diesWithUs {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}

// swap lets two files change places. The error says that one is missing, or that the file system cannot.
func swap(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
