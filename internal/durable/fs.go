// Package durable writes the state files: the only code that does. What it reports as done is on the disk.
//
// FS is the small file-system interface that everything goes through; OS is the real one. Files has the algorithms:
// Replace and Create (replace.go), Append (append.go), Lock (lock.go).
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// FS is the file system as the state needs it. Names are absolute paths.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	// Link gives the file a second name and fails with fs.ErrExist where there is one of that name.
	Link(from, to string) error
	Remove(name string) error
	Truncate(name string, size int64) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// TryLock locks the file of that name at once or fails with ErrLocked. Closing what it returns unlocks.
	TryLock(name string, how LockMode) (Locked, error)
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Seeker
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// LockMode is how a file is locked.
type LockMode int

const (
	Exclusive LockMode = iota // nobody else has it; the file is created when it is missing
	Shared                    // nobody else has it exclusively; a missing file is fs.ErrNotExist
)

// Locked is a lock that is held. Note leaves a text in the file, for people only.
type Locked interface {
	io.Closer
	Note(text string)
}

// ErrLocked is TryLock's error when somebody else has the lock.
var ErrLocked = errors.New("locked")

// ErrNoFile is the error for a name that a directory, a pipe, a socket or a device has.
var ErrNoFile = errors.New("it is a directory, a pipe or a device, and no file")

// Alone reports whether what failed concerns that one file: it is another user's, or is none. Those beside it are read.
func Alone(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrNoFile) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ELOOP)
}

// OS is the real file system.
type OS struct{}

// OpenFile opens a file, close-on-exec, and waits for nobody. Errors: ErrNoFile.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := open(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

// Mkdir makes a directory. What root makes, as every file, belongs to the owner of the directory in which it lies.
func (OS) Mkdir(name string, perm fs.FileMode) error { return makeDir(name, perm) }

// ReadDir lists a directory by name.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Stat describes a file.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Rename gives a file another name, over one that has it.
func (OS) Rename(from, to string) error {
	return patiently(func() error { return os.Rename(from, to) })
}

// Link gives a file a second name.
func (OS) Link(from, to string) error { return os.Link(from, to) }

// Remove removes a file.
func (OS) Remove(name string) error { return patiently(func() error { return os.Remove(name) }) }

// Truncate cuts a file.
func (OS) Truncate(name string, size int64) error { return os.Truncate(name, size) }

// SyncDir makes the names in a directory durable. Windows has no such call, and some file systems refuse it: both keep
// names in a journal of their own.
func (OS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// TryLock locks a file.
func (OS) TryLock(name string, how LockMode) (Locked, error) {
	flag := os.O_RDWR | os.O_CREATE
	if how == Shared {
		flag = os.O_RDONLY
	}
	f, err := open(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f, how); err != nil {
		f.Close()
		return nil, err
	}
	return osLock{f}, nil
}

// osLock is an open file with a lock on it.
type osLock struct{ f *os.File }

// Close unlocks before it closes: a child that another goroutine is just starting has a copy of the descriptor until
// its exec, and would keep the lock for that long.
func (l osLock) Close() error { return errors.Join(unlock(l.f), l.f.Close()) }

// Note writes text into the file unless it is there already.
func (l osLock) Note(text string) {
	old := make([]byte, len(text)+1)
	if n, _ := l.f.ReadAt(old, 0); string(old[:n]) == text {
		return
	}
	if l.f.Truncate(0) == nil {
		l.f.WriteAt([]byte(text), 0)
	}
}
