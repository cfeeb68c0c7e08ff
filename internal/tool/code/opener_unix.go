//go:build unix

package code

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// opener opens many files below a path, those of one directory after each other. It keeps the directory open: os.Root
// would open each directory above a file again. Nothing leads it out of the root, because os.Root opens the directory
// and the last element of a name is never followed if it is a link.
type opener struct {
	at     confinedPath
	dir    string
	handle *os.File // of dir, nil before the first
}

// open opens a regular file for reading, and returns its size. It fails for anything else, and for a link, and never
// waits.
func (o *opener) open(name string) (f io.ReadCloser, size int64, err error) {
	dir, base := filepath.Split(o.at.join(name))
	if o.handle == nil || dir != o.dir {
		o.close()
		f, err := o.at.root.Open(cmp.Or(dir, "."))
		if err != nil {
			return nil, 0, err
		}
		o.handle, o.dir = f, dir
	}
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(int(o.handle.Fd()), base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return nil, 0, errors.New(name + " is not a regular file")
	}
	return rawFile(fd), st.Size, nil
}

// close closes the directory.
func (o *opener) close() {
	if o.handle != nil {
		_ = o.handle.Close()
		o.handle = nil
	}
}

// rawFile is a descriptor of a regular file. An *os.File costs as much as reading a small file does.
type rawFile int

// Read reads from the file.
func (f rawFile) Read(p []byte) (int, error) {
	n, err := retryInterrupted(func() (int, error) { return unix.Read(int(f), p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Close closes the file.
func (f rawFile) Close() error { return unix.Close(int(f)) }

// retryInterrupted repeats a system call that a signal has interrupted.
func retryInterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
