package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"muster"
	"muster/internal/failpoint"
)

// ErrEnded is wrapped by the error of every write after a failed sync.
var ErrEnded = errors.New("writing has ended")

// Files writes the state files of one process. After a failed sync every later write fails with Unavailable: what the
// kernel dropped is unknown, so a second sync that succeeds would prove nothing.
type Files struct {
	// BeforeMakeDir, when it is set, is called before a directory is made, and its error refuses that. Set it before
	// the first write.
	BeforeMakeDir func() error

	fs    FS
	ended atomic.Pointer[muster.Error]

	// turns has, by lock file, a channel for the goroutine of this process whose turn it is to try the file.
	turns sync.Map

	// durableDirs holds the directories whose names, and the names of those above, are known to be durable.
	durableDirs sync.Map
}

// New returns Files on a file system.
func New(fs FS) *Files { return &Files{fs: fs} }

// FS returns the file system, for reading.
func (f *Files) FS() FS { return f.fs }

// Ended returns why writing has ended, or nil while it has not.
func (f *Files) Ended() error {
	if e := f.ended.Load(); e != nil {
		return e
	}
	return nil
}

// checkSync takes the result of a sync of path. A failed sync ends all writing.
func (f *Files) checkSync(path string, err error) error {
	if err == nil {
		return nil
	}
	e := muster.Errorf(muster.Unavailable, "%w: %s could not be made durable (%w)", ErrEnded, path, systemError(err)).
		WithHint("what was written last may be lost; check the disk, then start again with: muster resume")
	// Several goroutines may fail at once. All report the first failure, which is the cause of the others.
	f.ended.CompareAndSwap(nil, e)
	return f.ended.Load()
}

// syncDir makes the names in a directory durable. A new, moved or removed file is only certain after it.
func (f *Files) syncDir(dir string) error { return f.checkSync(dir, f.fs.SyncDir(dir)) }

// MakeDir makes a directory and the missing ones above it, durably.
func (f *Files) MakeDir(dir string) error {
	if _, err := f.fs.Stat(dir); err == nil {
		return f.syncName(dir)
	}
	if err := f.Ended(); err != nil {
		return err
	}
	return f.makeDir(dir)
}

// openIn calls open, which opens or makes the file at path, and once more after it has made the directory if that was
// missing.
func (f *Files) openIn(path string, open func() error) error {
	err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.MakeDir(filepath.Dir(path)); err != nil {
			return err
		}
		err = open()
	}
	return err
}

// makeDir makes a directory and syncs the one above it. It syncs also if the directory exists already, because the
// process that made it may not have synced yet.
func (f *Files) makeDir(dir string) error {
	up := filepath.Dir(dir)
	if f.BeforeMakeDir != nil {
		if err := f.BeforeMakeDir(); err != nil {
			return err
		}
	}
	failpoint.Hit("directory.begin")
	err := f.openIn(dir, func() error { return f.fs.Mkdir(dir, 0o700) })
	if errors.Is(err, fs.ErrExist) {
		if fi, e := f.fs.Stat(dir); e == nil && !fi.IsDir() {
			return muster.Errorf(muster.Unavailable, "%s is in the way: it is a file where muster needs a directory",
				dir).
				WithHint("move it away")
		}
		err = nil // another process was faster, and may not have synced yet
	}
	if err != nil {
		return writeError(dir, err)
	}
	failpoint.Hit("directory.made")
	defer failpoint.Hit("directory.end")
	if err := f.syncDir(up); err != nil {
		return err
	}
	return f.syncNamesAbove(dir)
}

// syncName makes the name of a state directory durable, once for each in the life of a process, because the process
// that made it may have been killed before its sync. State lies in directories whose names begin with a dot; what is
// above those existed before us.
func (f *Files) syncName(dir string) error {
	if _, known := f.durableDirs.Load(dir); known || !strings.Contains(dir, string(filepath.Separator)+".") {
		return nil
	}
	if err := f.Ended(); err != nil {
		return err
	}
	up := filepath.Dir(dir)
	err := f.fs.SyncDir(up)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return nil // none of ours; and what is not there the caller's own step says better
	case err != nil:
		return f.checkSync(up, err)
	}
	return f.syncNamesAbove(dir)
}

// syncNamesAbove is the second half of syncName, when the name itself is durable. It goes up to the state directory,
// and remembers the directory so that later writes in it cost no further sync. Only what is durable is remembered:
// after an error the next write tries again.
func (f *Files) syncNamesAbove(dir string) error {
	if up := filepath.Dir(dir); up != dir && !strings.HasPrefix(filepath.Base(dir), ".") {
		if err := f.syncName(up); err != nil {
			return err
		}
	}
	f.durableDirs.Store(dir, true)
	return nil
}

// writeError says what could not be written, and what to do. A missing file stays fs.ErrNotExist underneath.
func writeError(path string, err error) error {
	var known *muster.Error // it has its sentence already
	if err == nil || errors.As(err, &known) {
		return err
	}
	dir := filepath.Dir(path)
	switch why := systemError(err); {
	case isNotUsed(err):
		return muster.Errorf(muster.Unavailable, "%s is in the way where muster needs a file (%w)", path, why).
			WithHint("move it away")
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return muster.Errorf(muster.Unavailable, "muster cannot write in %s (%w)", dir, why).
			WithHint("make that directory writable for you, or work in another clone of the repository")
	case errors.Is(err, syscall.ENOTDIR):
		return muster.Errorf(muster.Unavailable, "a file is in the way of the directory %s (%w)", dir, why).
			WithHint("move it away")
	case errors.Is(err, syscall.ENOSPC):
		return muster.Errorf(muster.Unavailable, "the disk of %s is full (%w)", dir, why).
			WithHint("free some space; a team that has stopped goes on with: muster resume")
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return muster.Errorf(muster.Unavailable, "too many files are open to open %s (%w)", path, why).
			WithHint("raise the limit (ulimit -n) or run fewer teammates")
	default:
		return muster.Errorf(muster.Unavailable, "%s cannot be written (%w)", path, why).
			WithHint("check the disk, then go on with: muster resume")
	}
}

// Unreadable returns the error for a file that could not be read. It is Corrupt if only that file is concerned, and
// says what to do. It is Unavailable if the whole directory is closed to us, and for everything else.
func Unreadable(on FS, path string, err error) error {
	switch why := systemError(err); {
	case !ConcernsOneFile(err):
		return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", path, why)
	case !errors.Is(err, fs.ErrPermission):
		return muster.Errorf(muster.Corrupt, "%s cannot be read: %w; move it away", path, why)
	}
	if _, err := on.Stat(filepath.Dir(path) + string(filepath.Separator) + "."); errors.Is(err, fs.ErrPermission) {
		return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", filepath.Dir(path), systemError(err)).
			WithHint("make it yours: chown -R, as root")
	}
	return muster.Errorf(muster.Corrupt,
		"%s cannot be read: %w; it belongs to another user: make it yours (chown, as root)", path, systemError(err))
}

// systemError returns what the system said, without the path and the call around it, which our sentences have already.
func systemError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// MaxFile is how large a state file may be that is read as a whole, in bytes. The largest that muster writes has an
// entry for each member or lane, of less than a kilobyte.
const MaxFile = 16 << 20

// ReadFile returns the content of a file, and its info from before it was read. Whoever keeps both then takes a content
// for too old, never for too new. The error for a file above MaxFile is ErrTooLarge.
func (f *Files) ReadFile(name string) ([]byte, fs.FileInfo, error) {
	return f.ReadAtMost(name, MaxFile)
}

// ReadAtMost is ReadFile with a limit of its own, in bytes.
func (f *Files) ReadAtMost(name string, limit int64) ([]byte, fs.FileInfo, error) {
	file, err := f.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	return readAll(file, name, limit)
}

// readAll returns the content of an open file of at most limit bytes, and its info from before it was read.
func readAll(file File, name string, limit int64) ([]byte, fs.FileInfo, error) {
	fi, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if fi.Size() <= limit {
		b := bytes.NewBuffer(make([]byte, 0, max(fi.Size(), 0)+bytes.MinRead))
		// It may grow while it is read.
		if n, err := b.ReadFrom(io.LimitReader(file, limit+1)); n <= limit {
			return b.Bytes(), fi, err
		}
	}
	return nil, nil, &fs.PathError{Op: "read", Path: name, Err: tooLarge(limit)}
}

// ReadPart returns so many bytes of a file from an offset on. It is an error if the file has fewer.
func ReadPart(r io.ReaderAt, at, size int64) ([]byte, error) {
	part := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(r, at, size), part)
	return part, err
}
