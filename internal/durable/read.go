package durable

import (
	"bytes"
	"io/fs"
	"os"
)

// ReadFile returns the content of a file, and its info from before it was read. On Linux it takes four system calls,
// because the first look at a large table is mostly this.
func (f *Files) ReadFile(name string) ([]byte, fs.FileInfo, error) {
	if _, ok := f.fs.(OS); ok {
		return readFile(name)
	}
	return readOpened(f.fs, name)
}

// readOpened is ReadFile through the interface.
func readOpened(on FS, name string) ([]byte, fs.FileInfo, error) {
	file, err := on.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	fi, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	b := bytes.NewBuffer(make([]byte, 0, max(fi.Size(), 0)+bytes.MinRead))
	_, err = b.ReadFrom(file)
	return b.Bytes(), fi, err
}
