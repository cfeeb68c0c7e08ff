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

// open opens a file with close-on-exec. It returns ErrNotRegular for everything else that has the name, because
// opening or reading a pipe could wait forever.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Open(name, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if errors.Is(err, unix.ENXIO) { // a socket, or a pipe that nobody reads
		err = ErrNotRegular
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st syscall.Stat_t
	_, err = retryInterrupted(func() (int, error) { return 0, syscall.Fstat(fd, &st) })
	if err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err = ErrNotRegular
	}
	if err == nil && flag&os.O_CREATE != 0 && st.Size == 0 && st.Uid == 0 {
		giveToOwner(fd, filepath.Dir(name))
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // os would ask whether it can be polled
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// giveToOwner gives what root made to the owner of its directory, so that a command under sudo leaves nothing behind
// that the owner's team cannot read. If it fails, the file stays root's.
func giveToOwner(fd int, dir string) {
	var up syscall.Stat_t
	if os.Geteuid() == 0 && syscall.Stat(dir, &up) == nil && up.Uid != 0 {
		_ = unix.Fchown(fd, int(up.Uid), int(up.Gid))
	}
}

// makeDir makes a directory.
func makeDir(name string, perm fs.FileMode) error {
	err := os.Mkdir(name, perm)
	if err == nil && os.Geteuid() == 0 {
		if d, e := os.Open(name); e == nil {
			giveToOwner(int(d.Fd()), filepath.Dir(name))
			_ = d.Close()
		}
	}
	return err
}

// retryInterrupted repeats a call while signals interrupt it.
func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
