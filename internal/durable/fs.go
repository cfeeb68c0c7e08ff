// Package durable writes the state files. It is the only code that does. What a method reports as done is on the disk
// and survives a power loss.
//
// Files has the algorithms: Replace and Create for whole files, Append and Tail for files of lines, Lock and TryLock
// for lock files, Rename, Remove and Truncate. FS is the small file-system interface below; OS is the real one, and
// tests put a simulated one in its place.
//
// Three invariants hold. A reader sees the old or the new content of a file, never a mixture. A name is durable before
// anything depends on it. After a failed sync nothing is written any more, because what the kernel dropped is not
// known.
//
// The package does not know what the files mean, and takes no lock by itself.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// FS is the file system as the state needs it. Names are absolute paths.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	// Names lists a directory in no order.
	Names(dir string) ([]string, error)
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	// Link gives the file a second name. It fails with fs.ErrExist if something has that name.
	Link(from, to string) error
	Remove(name string) error
	Truncate(name string, size int64) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// TryLock locks the file of that name at once or fails with ErrLocked. Closing the result unlocks it.
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

// The ways to lock a file.
const (
	Exclusive LockMode = iota // nobody else has it; the file is created when it is missing
	Shared                    // nobody else has it exclusively; a missing file is fs.ErrNotExist
)

// Locked is a lock that is held. Note leaves a text in the file, which is only for people.
type Locked interface {
	io.Closer
	Note(text string)
}

// ErrLocked is the error of TryLock when somebody else has the lock.
var ErrLocked = errors.New("locked")

// ConcernsOneFile reports whether an error concerns only one file: it belongs to another user, it is no regular file or
// a link, or it is too large. The files beside it can be read.
func ConcernsOneFile(err error) bool {
	return errors.Is(err, fs.ErrPermission) || isNotUsed(err)
}

// isNotUsed reports whether something has the name of a state file and is not used as one.
func isNotUsed(err error) bool {
	return errors.Is(err, ErrNotRegular) || errors.Is(err, ErrLink) || errors.Is(err, ErrLinked) ||
		errors.Is(err, ErrTooLarge) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ELOOP)
}

// OS is the real file system. With a Root, which is the root of a repository, it uses only what lies below it: no
// method follows a symbolic link there, and OpenFile refuses a file that has another name. A repository that somebody
// else has filled can then neither lead a write out of it nor bring in a file from elsewhere.
type OS struct {
	Root string // absolute; "": nothing is refused but what is no regular file
	// isForeign says that others may write below Root, and Staged does not: no file with two names is a staged one.
	isForeign bool
}

// OpenFile opens a file with close-on-exec. It never waits, as opening a pipe would. Errors: ErrNotRegular, ErrLink,
// ErrLinked.
func (o OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := o.open(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

// Mkdir makes a directory. What root makes belongs to the owner of the directory above it, as with files.
func (o OS) Mkdir(name string, perm fs.FileMode) error { return o.mkdir(name, perm) }

// Names lists a directory. It makes no object of each entry, and does not sort them, because a first look at a large
// table would take noticeably longer.
func (o OS) Names(dir string) ([]string, error) {
	d, err := o.openPath(dir, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return d.Readdirnames(-1)
}

// Stat describes a file. Below a root it describes a link itself. It says nothing of what leads to the file: whoever
// opens that learns it.
func (o OS) Stat(name string) (fs.FileInfo, error) {
	if o.Root == "" || name == o.Root {
		return os.Stat(name)
	}
	return os.Lstat(name)
}

// Rename renames a file, and replaces one that has the new name.
func (o OS) Rename(from, to string) error {
	return retryTransient(func() error { return o.rename(from, to) })
}

// Link gives a file a second name.
func (o OS) Link(from, to string) error { return o.link(from, to) }

// Remove removes a file.
func (o OS) Remove(name string) error { return retryTransient(func() error { return o.remove(name) }) }

// Truncate cuts a file.
func (o OS) Truncate(name string, size int64) error {
	f, err := o.open(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// SyncDir makes the names in a directory durable. Windows has no such call, and some file systems refuse it; both keep
// names in a journal of their own.
func (o OS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := o.openPath(name, os.O_RDONLY|openNonblock, 0)
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
func (o OS) TryLock(name string, how LockMode) (Locked, error) {
	flag := os.O_RDWR | os.O_CREATE
	if how == Shared {
		flag = os.O_RDONLY
	}
	f, err := o.open(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return osLock{f}, nil
}

// osLock is an open file with a lock on it.
type osLock struct{ f *os.File }

// Close unlocks before it closes. A child process that another goroutine is just starting has a copy of the descriptor
// until its exec, and would keep the lock that long.
func (l osLock) Close() error { return errors.Join(unlock(l.f), l.f.Close()) }

// Note writes text into the file unless it is there already.
func (l osLock) Note(text string) {
	old := make([]byte, len(text)+1)
	if n, _ := l.f.ReadAt(old, 0); string(old[:n]) == text {
		return
	}
	if l.f.Truncate(0) == nil {
		_, _ = l.f.WriteAt([]byte(text), 0) // the lock counts, not its text
	}
}

// IsMissing reports that nothing is at path. What cannot be looked at counts as there: callers remove or make something
// only where they are sure.
func IsMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Glob returns the paths below dir that match the pattern of path.Match, which is relative to dir, sorted. Unlike
// filepath.Glob it takes no character of dir for a part of the pattern: people call a directory [work]. A link to
// nothing matches by its name, as does a name that is not UTF-8.
func Glob(dir, pattern string) (paths []string) {
	first, rest, isDeeper := strings.Cut(pattern, "/")
	entries, _ := os.ReadDir(dir) // sorted; a directory that cannot be read has none
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if ok, _ := path.Match(first, e.Name()); ok && isDeeper {
			paths = append(paths, Glob(at, rest)...)
		} else if ok {
			paths = append(paths, at)
		}
	}
	return paths
}
