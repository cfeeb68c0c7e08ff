package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The errors for a file that has the name of a state file and is not used as one. Each of them concerns that file
// alone.
var (
	// ErrNotRegular is the error for the name of a directory, a pipe, a socket or a device.
	ErrNotRegular = errors.New("it is a directory, a pipe or a device, and no file")
	// ErrLink is the error for a name below the root that is a symbolic link, or that a symbolic link leads to. What is
	// written there would change a file elsewhere.
	ErrLink = errors.New("it is, or lies below, a symbolic link")
	// ErrLinked is the error for a file that has another name. What is written to it would change the other file too.
	ErrLinked = errors.New("it has a second name, a hard link; a copy in its place has none")
	// ErrTooLarge is wrapped by the error for a file or a line that is larger than its limit.
	ErrTooLarge = errors.New("it is too large")
)

// tooLarge returns the error for what is larger than limit bytes.
func tooLarge(limit int64) error {
	size, unit := limit>>10, "KiB"
	if size >= 1<<10 {
		size, unit = size>>10, "MiB"
	}
	return fmt.Errorf("%w: the limit is %d %s", ErrTooLarge, size, unit)
}

// errOutside is the error for a name that does not lie below the root.
var errOutside = errors.New("it is outside of the repository")

// OpenBelow opens a regular file below root. It refuses a symbolic link anywhere between the two, a file that has
// another name, and what is no regular file. It never waits, as opening a pipe would. The names above root may be
// symbolic links. Unlike OS.OpenFile it also refuses a file that Staged.Create has just linked. Errors: ErrLink,
// ErrLinked and ErrNotRegular, each in an *fs.PathError.
func OpenBelow(root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	return OS{Root: root, isForeign: true}.open(name, flag, perm)
}

// ReadRegular returns the content of a regular file of at most limit bytes, wherever it lies: one of git's or of the
// user's own. Links are followed. It never waits. Errors: ErrNotRegular and ErrTooLarge.
func ReadRegular(name string, limit int64) ([]byte, error) { return OS{}.read(name, limit) }

// ReadBelow returns the content of a regular file below root. It refuses what OpenBelow refuses, and a file that is
// larger than limit, which is ErrTooLarge.
func ReadBelow(root, name string, limit int64) ([]byte, error) {
	return OS{Root: root, isForeign: true}.read(name, limit)
}

// read returns the content of a file that open opens.
func (o OS) read(name string, limit int64) ([]byte, error) {
	f, err := o.open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, _, err := readAll(f, name, limit)
	return data, err
}

// Dirs are the directories below a root as a file system, for fs.WalkDir. A pipe that takes the place of a directory
// meanwhile is an error, and not waited for.
type Dirs struct{ *os.Root }

// Open opens a directory.
func (d Dirs) Open(name string) (fs.File, error) { return d.OpenDir(name) }

// OpenDir is Open for what needs more of it.
func (d Dirs) OpenDir(name string) (*os.File, error) { return d.Root.Open(name + "/") }

// CreateBelow makes a new file below root, and the directories above it that are missing. They are not synced: the file
// is for people, and nothing depends on it. The error is fs.ErrExist when something has the name.
func CreateBelow(root, name string) (*os.File, error) {
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := OpenBelow(root, name, flag, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeBelow(OS{Root: root}, filepath.Dir(name)); err != nil {
			return nil, err
		}
		f, err = OpenBelow(root, name, flag, 0o600)
	}
	return f, err
}

// makeBelow makes a directory and the missing ones above it.
func makeBelow(on OS, dir string) error {
	err := on.mkdir(dir, 0o700)
	if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
		if err = makeBelow(on, up); err == nil {
			err = on.mkdir(dir, 0o700)
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		err = nil
	}
	return err
}

// WriteBelow writes a file as CreateBelow makes it, and writes to nothing else. It replaces what has its name, unless
// that is a directory: readers find the old file or the new one.
func WriteBelow(root, name string, data []byte) error {
	next := filepath.Join(filepath.Dir(name), TemporaryName(filepath.Base(name)))
	f, err := CreateBelow(root, next)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	on := OS{Root: root}
	if err = errors.Join(err, f.Close()); err == nil {
		err = on.rename(next, name)
	}
	if err != nil {
		_ = on.remove(next)
	}
	return err
}

// MakeDirBelow makes a directory below root that is missing, and the missing ones above it. The error is ErrLink when
// it is, or lies below, a symbolic link.
func MakeDirBelow(root, dir string) error {
	on := OS{Root: root}
	if err := makeBelow(on, dir); err != nil {
		return err
	}
	d, err := on.openPath(dir, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	if fi, e := d.Stat(); e == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return errors.Join(err, d.Close())
}

// open opens a file as OpenFile says.
func (o OS) open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := o.openPath(name, flag|openNonblock, perm)
	if isNeverOpened(err) { // a socket, or a pipe that nobody reads
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		err = o.check(f, fi)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if flag&os.O_CREATE != 0 && fi.Size() == 0 {
		giveToOwner(f)
	}
	return f, nil
}

// check refuses an open file that is no regular one. Below a root it also refuses one with another name.
func (o OS) check(f *os.File, fi fs.FileInfo) error {
	switch {
	case !fi.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}
	case o.Root == "" || links(fi) <= 1 || !o.isForeign && isOnlyStaged(f, fi):
		return nil
	}
	return &fs.PathError{Op: "open", Path: f.Name(), Err: ErrLinked}
}

// isOnlyStaged reports whether the only other name of a file is the temporary one that Staged.Create gave it. It has
// both for a moment, and for longer if its process was killed then.
func isOnlyStaged(f *os.File, fi fs.FileInfo) bool {
	dir, base := filepath.Split(f.Name())
	for _, temp := range Glob(dir, ".*.tmp") {
		other, err := os.Lstat(temp)
		if err == nil && strings.HasPrefix(filepath.Base(temp), "."+base+".") && os.SameFile(fi, other) {
			return links(fi) == 2
		}
	}
	now, err := f.Stat() // the temporary name may have gone meanwhile
	return err == nil && links(now) <= 1
}

// openPath opens a file or a directory. Below a root, one system call does it where the system has one that refuses
// links and no link lies above the root.
func (o OS) openPath(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if o.Root == "" {
		return os.OpenFile(name, flag, perm)
	}
	rel, ok := o.relative(name)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errOutside}
	}
	f, err := openWithoutLinks(name, flag, perm)
	if errors.Is(err, errors.ErrUnsupported) {
		f, err = o.openStepwise(rel, name, flag, perm)
	}
	return f, err
}

// relative returns a name relative to the root.
func (o OS) relative(name string) (rel string, ok bool) {
	if name == o.Root {
		return ".", true
	}
	rel, ok = strings.CutPrefix(name, strings.TrimSuffix(o.Root, string(filepath.Separator))+string(filepath.Separator))
	return rel, ok && filepath.IsLocal(rel)
}

// openStepwise looks at each directory on the way before it opens the file. A link that somebody puts there in between
// still leads to nothing outside of the root, because os.Root refuses that.
func (o OS) openStepwise(rel, name string, flag int, perm fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && !os.IsPathSeparator(rel[i]) {
			continue
		}
		if fi, err := root.Lstat(rel[:i]); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
		}
	}
	f, err := root.OpenFile(rel, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: systemError(err)}
	}
	return f, nil
}
