package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// hasDied returns false: whether a process lives is not asked here.
func hasDied(int) bool { return false }

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

// openNonblock is nothing here: an open does not wait.
const openNonblock = 0

// isNeverOpened reports whether an open failed because of what has the name. Here none does.
func isNeverOpened(error) bool { return false }

// links returns how many names a file has. Windows does not say it with the other properties of a file.
func links(fs.FileInfo) uint64 { return 1 }

// IsOwn reports whether a file is this user's. It says true: this system does not tell by the properties of a file.
func IsOwn(fs.FileInfo) bool { return true }

// giveToOwner does nothing: Windows has no root whose files would have to be given away.
func giveToOwner(*os.File) {}

// GiveToOwner does nothing, too.
func GiveToOwner(string, time.Time, ...string) {}

// mkdir makes a directory.
func (o OS) mkdir(name string, perm fs.FileMode) error {
	return o.inDir(name, func() error { return os.Mkdir(name, perm) })
}

// rename renames a file.
func (o OS) rename(from, to string) error {
	return o.inDir(from, func() error { return o.inDir(to, func() error { return os.Rename(from, to) }) })
}

// link gives a file a second name.
func (o OS) link(from, to string) error {
	return o.inDir(from, func() error { return o.inDir(to, func() error { return os.Link(from, to) }) })
}

// remove removes a file or an empty directory.
func (o OS) remove(name string) error { return o.inDir(name, func() error { return os.Remove(name) }) }

// inDir calls do if no link leads to the directory of a name. The directory stays open, so nobody can replace it
// meanwhile.
func (o OS) inDir(name string, do func() error) error {
	if o.Root != "" {
		dir, err := o.openPath(filepath.Dir(name), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
	}
	return do()
}
