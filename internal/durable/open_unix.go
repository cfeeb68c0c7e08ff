//go:build unix

package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens a file, close-on-exec. What has the name and is no file is ErrNoFile: to open a pipe could wait for ever, and to
// read it too.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := retried(func() (int, error) {
		return unix.Open(name, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err == unix.ENXIO { // a socket, or a pipe that nobody reads
		err = ErrNoFile
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st syscall.Stat_t
	_, err = retried(func() (int, error) { return 0, syscall.Fstat(fd, &st) })
	if err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err = ErrNoFile
	}
	if err == nil && flag&os.O_CREATE != 0 && st.Size == 0 && st.Uid == 0 {
		handOver(fd, filepath.Dir(name))
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // os would ask whether it can be polled
	}
	if err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// handOver gives what root has made to the owner of its directory: a command under sudo leaves nothing behind that the team of
// that owner cannot read. Where it fails, it stays as it is.
func handOver(fd int, dir string) {
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
			handOver(int(d.Fd()), filepath.Dir(name))
			d.Close()
		}
	}
	return err
}

// retried does a call again while a signal interrupts it.
func retried(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
