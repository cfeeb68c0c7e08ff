package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readFile opens, describes, reads and closes a file. An os.File would also ask whether the file can be polled, and
// read once more to find the end, which a regular file shows by giving less than was asked for.
func readFile(name string) ([]byte, fs.FileInfo, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Open(name,
			unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENXIO) { // a socket
		err = ErrNotRegular
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // it was only read
	fi := &statInfo{name: filepath.Base(name)}
	if _, err := retryInterrupted(func() (int, error) { return 0, syscall.Fstat(fd, &fi.st) }); err != nil {
		return nil, nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if fi.st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	data := make([]byte, 0, max(fi.st.Size, 0)+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		asked := cap(data) - len(data)
		n, err := retryInterrupted(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		data = data[:len(data)+n]
		if n == 0 || n < asked && int64(len(data)) == fi.st.Size {
			return data, fi, nil
		}
	}
}

// statInfo is the result of fstat as an fs.FileInfo.
type statInfo struct {
	name string
	st   syscall.Stat_t
}

func (d *statInfo) Name() string       { return d.name }
func (d *statInfo) Size() int64        { return d.st.Size }
func (d *statInfo) ModTime() time.Time { return time.Unix(d.st.Mtim.Unix()) }
func (d *statInfo) IsDir() bool        { return d.Mode().IsDir() }
func (d *statInfo) Sys() any           { return &d.st }

func (d *statInfo) Mode() fs.FileMode { return fs.FileMode(d.st.Mode & 0o777) }
