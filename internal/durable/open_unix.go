//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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
