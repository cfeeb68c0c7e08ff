//go:build unix

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file without waiting, or returns ErrLocked. The lock belongs to the open file and not to the process, so
// two descriptors of one process exclude each other, and the system releases the lock when the process dies.
func lock(f *os.File, how LockMode) error {
	op := unix.LOCK_EX
	if how == Shared {
		op = unix.LOCK_SH
	}
	for {
		switch err := unix.Flock(int(f.Fd()), op|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrLocked
		case nil:
			return nil
		default:
			return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// unlock releases the lock.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// retryTransient calls f once. Here an open file can be renamed and removed.
func retryTransient(f func() error) error { return f() }
