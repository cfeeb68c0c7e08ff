package durable

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// far is where the locked byte lies: locks are mandatory here, and people want to read what the file says.
var far = windows.Overlapped{OffsetHigh: 1 << 20}

func lock(f *os.File, how LockMode) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if how == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := far
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	if err != nil {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

func unlock(f *os.File) error {
	at := far
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// patiently does f again for a while when a reader, a virus scanner or an indexer has the file open.
func patiently(f func() error) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := f()
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || wait > 100*time.Millisecond {
			return err
		}
		time.Sleep(wait)
	}
}
