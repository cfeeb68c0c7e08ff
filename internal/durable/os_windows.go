package durable

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// lockedByte is the byte that is locked. Locks are mandatory on Windows, so it lies far behind what people may read.
var lockedByte = windows.Overlapped{OffsetHigh: 1 << 20}

// lock locks one byte of a file without waiting, or returns ErrLocked. The byte lies beyond every content, because on
// Windows nobody else can read a locked byte.
func lock(f *os.File, how LockMode) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if how == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := lockedByte
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	if err != nil {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

// unlock releases the lock.
func unlock(f *os.File) error {
	at := lockedByte
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// retryTransient repeats f for a while, because a reader, a virus scanner or an indexer may have the file open.
func retryTransient(f func() error) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := f()
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || wait > 100*time.Millisecond {
			return err
		}
		time.Sleep(wait)
	}
}

// open opens a file. What has the name and is no file is ErrNotRegular.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if fi, err := os.Stat(name); err == nil && !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return os.OpenFile(name, flag, perm)
}

// makeDir makes a directory. Windows has no root whose files would have to be given away.
func makeDir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
