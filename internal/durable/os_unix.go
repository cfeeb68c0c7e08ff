//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

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

// hasDied reports whether no process has that number.
func hasDied(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// retryTransient calls f once. Here an open file can be renamed and removed.
func retryTransient(f func() error) error { return f() }

// openNonblock keeps an open from waiting for the other end of a pipe.
const openNonblock = syscall.O_NONBLOCK

// isNeverOpened reports whether an open failed because the name is a socket's, or that of a pipe without a reader.
func isNeverOpened(err error) bool { return errors.Is(err, syscall.ENXIO) }

// device returns the number of the file system of a file.
func device(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) //nolint:unconvert,gosec // It is another type on some systems.
	}
	return 0
}

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // It is smaller on some systems.
	}
	return 1
}

// IsOwn reports whether a file is this user's.
func IsOwn(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// giveToOwner gives what root made to the owner of its directory, so that a command under sudo leaves nothing behind
// that the owner's team cannot read. If it fails, the file stays root's.
func giveToOwner(f *os.File) {
	var made, up syscall.Stat_t
	if os.Geteuid() == 0 && syscall.Fstat(int(f.Fd()), &made) == nil && made.Uid == 0 &&
		syscall.Stat(filepath.Dir(f.Name()), &up) == nil && up.Uid != 0 {
		_ = f.Chown(int(up.Uid), int(up.Gid))
	}
}

// GiveToOwner gives what root's programs, such as git, have written below a directory since a moment to the owner of
// that directory. What lies below a directory of except, a path relative to dir, stays: it belongs to the
// commands that write there.
//
// The owner may change files meanwhile. Lookups never leave dir and its file system, and files with more than one link,
// which may be root's own, keep their owner.
func GiveToOwner(dir string, since time.Time, except ...string) {
	since = since.Add(-time.Second) // the clock of a file system may be behind
	up, err := os.Stat(dir)
	root, rootErr := os.OpenRoot(dir)
	if err != nil || rootErr != nil {
		return
	}
	defer root.Close()
	if os.Geteuid() != 0 || IsOwn(up) {
		return
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		if slices.Contains(except, path) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err == nil && d.IsDir() && device(info) != device(up) {
			return fs.SkipDir
		}
		if err != nil || !IsOwn(info) || info.ModTime().Before(since) {
			return nil
		}
		f, err := root.OpenFile(path, os.O_RDONLY|openNonblock, 0)
		if err != nil {
			return nil
		}
		defer f.Close()
		isPlain := func(info fs.FileInfo) bool { return device(info) == device(up) && links(info) == 1 }
		if info, err := f.Stat(); err == nil && (info.IsDir() || isPlain(info)) {
			giveToOwner(f)
		}
		return nil
	})
}

// mkdir makes a directory. What root makes belongs to the owner of the directory above it.
func (o OS) mkdir(name string, perm fs.FileMode) error {
	err := o.inDir("mkdir", name, func(dir int, base string) error {
		return unix.Mkdirat(dir, base, uint32(perm.Perm()))
	})
	if err == nil && os.Geteuid() == 0 {
		if d, e := o.openPath(name, os.O_RDONLY, 0); e == nil {
			giveToOwner(d)
			_ = d.Close()
		}
	}
	return err
}

// rename renames a file.
func (o OS) rename(from, to string) error { return o.inDirs("rename", from, to, unix.Renameat) }

// link gives a file a second name.
func (o OS) link(from, to string) error {
	return o.inDirs("link", from, to, func(fromDir int, from string, toDir int, to string) error {
		return unix.Linkat(fromDir, from, toDir, to, 0)
	})
}

// remove removes a file or an empty directory.
func (o OS) remove(name string) error {
	return o.inDir("remove", name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // the latter is what darwin says of a directory
			if e := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); !errors.Is(e, unix.ENOTDIR) {
				err = e
			}
		}
		return err
	})
}

// inDir calls do with the directory of a name, open, and the rest of the name. So nobody can put a link in the place of
// the directory between the check and the call.
func (o OS) inDir(op, name string, do func(dir int, base string) error) error {
	err := error(nil)
	if o.Root == "" {
		err = do(unix.AT_FDCWD, name)
	} else {
		dir, e := o.openPath(filepath.Dir(name), os.O_RDONLY|syscall.O_DIRECTORY, 0)
		if e != nil {
			return e
		}
		defer func() { _ = dir.Close() }()
		err = do(int(dir.Fd()), filepath.Base(name))
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// inDirs is inDir for a call with two names.
func (o OS) inDirs(op, from, to string, do func(fromDir int, from string, toDir int, to string) error) error {
	return o.inDir(op, from, func(fromDir int, fromBase string) error {
		if o.Root != "" && filepath.Dir(from) == filepath.Dir(to) {
			return do(fromDir, fromBase, fromDir, filepath.Base(to))
		}
		err := o.inDir(op, to, func(toDir int, toBase string) error { return do(fromDir, fromBase, toDir, toBase) })
		return systemError(err)
	})
}
