//go:build unix

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

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

func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// retryTransient calls f once. Here an open file can be renamed and removed.
func retryTransient(f func() error) error { return f() }
