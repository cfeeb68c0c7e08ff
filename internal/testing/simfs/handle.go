package simfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
)

// handle is an open file.
type handle struct {
	fs   *FS
	node *node
	name string
	flag int

	mu     sync.Mutex // one call at a time moves the place
	at     int64
	closed bool
}

// enter locks the handle and the file system.
func (h *handle) enter() (leave func(), err error) {
	h.mu.Lock()
	h.fs.mu.Lock()
	leave = func() {
		h.fs.mu.Unlock()
		h.mu.Unlock()
	}
	if h.closed {
		leave()
		return nil, fail("use", h.name, fs.ErrClosed)
	}
	return leave, nil
}

// Read reads on.
func (h *handle) Read(b []byte) (int, error) {
	leave, err := h.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	if h.node.dir {
		return 0, fail("read", h.name, syscall.EISDIR)
	}
	if h.at >= int64(len(h.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.node.data[h.at:])
	h.at += int64(n)
	return n, nil
}

// ReadAt reads from a place.
func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	leave, err := h.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	if off < 0 {
		return 0, fail("read", h.name, syscall.EINVAL)
	}
	if off >= int64(len(h.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Write writes on, at the end in a file that was opened for appending.
func (h *handle) Write(b []byte) (int, error) {
	leave, err := h.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	if h.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, fail("write", h.name, syscall.EBADF)
	}
	if h.flag&os.O_APPEND != 0 {
		h.at = int64(len(h.node.data))
	}
	h.fs.write(h.name, h.node, h.at, b)
	h.at += int64(len(b))
	return len(b), nil
}

// Seek moves the place.
func (h *handle) Seek(off int64, whence int) (int64, error) {
	leave, err := h.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	switch whence {
	case io.SeekCurrent:
		off += h.at
	case io.SeekEnd:
		off += int64(len(h.node.data))
	}
	if off < 0 {
		return 0, fail("seek", h.name, syscall.EINVAL)
	}
	h.at = off
	return off, nil
}

// Stat describes the file.
func (h *handle) Stat() (fs.FileInfo, error) {
	leave, err := h.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return infoOf(path.Base(filepath.ToSlash(h.name)), h.node), nil
}

// Sync makes the content durable.
func (h *handle) Sync() error {
	leave, err := h.enter()
	if err != nil {
		return err
	}
	defer leave()
	h.fs.calls = append(h.fs.calls, call{text: "sync " + h.name, sync: h.node})
	return nil
}

// Close closes the file. It makes nothing durable.
func (h *handle) Close() error {
	leave, err := h.enter()
	if err != nil {
		return err
	}
	defer leave()
	h.closed = true
	return nil
}
