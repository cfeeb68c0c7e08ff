//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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

// open opens a file with close-on-exec. It returns ErrNotRegular for everything else that has the name, because
// opening or reading a pipe could wait forever.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ENXIO) { // a socket, or a pipe that nobody reads
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
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

// giveToOwner gives what root made to the owner of its directory, so that a command under sudo leaves nothing behind
// that the owner's team cannot read. If it fails, the file stays root's.
func giveToOwner(f *os.File) {
	var made, up syscall.Stat_t
	if os.Geteuid() == 0 && syscall.Fstat(int(f.Fd()), &made) == nil && made.Uid == 0 &&
		syscall.Stat(filepath.Dir(f.Name()), &up) == nil && up.Uid != 0 {
		_ = f.Chown(int(up.Uid), int(up.Gid))
	}
}

// makeDir makes a directory.
func makeDir(name string, perm fs.FileMode) error {
	err := os.Mkdir(name, perm)
	if err == nil && os.Geteuid() == 0 {
		if d, e := os.Open(name); e == nil {
			giveToOwner(d)
			_ = d.Close()
		}
	}
	return err
}
