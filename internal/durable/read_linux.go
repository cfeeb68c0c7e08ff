package durable

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readFile opens, describes, reads and closes a file. An os.File would ask besides whether it can be polled, and read
// once more for the end, which a plain file shows by giving less than was asked for.
func readFile(name string) ([]byte, fs.FileInfo, error) {
	fd, err := retried(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err == unix.ENXIO { // a socket
		err = ErrNoFile
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	fi := &described{name: filepath.Base(name)}
	if _, err := retried(func() (int, error) { return 0, syscall.Fstat(fd, &fi.st) }); err != nil {
		return nil, nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if fi.st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNoFile}
	}
	data := make([]byte, 0, max(fi.st.Size, 0)+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		asked := cap(data) - len(data)
		n, err := retried(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		data = data[:len(data)+n]
		if n == 0 || n < asked && int64(len(data)) == fi.st.Size {
			return data, fi, nil
		}
	}
}

// described is what fstat said of a file.
type described struct {
	name string
	st   syscall.Stat_t
}

func (d *described) Name() string       { return d.name }
func (d *described) Size() int64        { return d.st.Size }
func (d *described) ModTime() time.Time { return time.Unix(d.st.Mtim.Unix()) }
func (d *described) IsDir() bool        { return d.Mode().IsDir() }
func (d *described) Sys() any           { return &d.st }

func (d *described) Mode() fs.FileMode { return fs.FileMode(d.st.Mode & 0o777) }
