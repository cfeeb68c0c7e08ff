package durable

import (
	"bytes"
	"io"
	"io/fs"
	"os"
)

// ReadFile returns the content of a file, and its info from before it was read. Whoever keeps both then takes a content
// for too old, never for too new.
func (f *Files) ReadFile(name string) ([]byte, fs.FileInfo, error) {
	file, err := f.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	fi, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, max(fi.Size(), 0)+bytes.MinRead))
	_, err = b.ReadFrom(file)
	return b.Bytes(), fi, err
}

// ReadPart returns so many bytes of a file from an offset on. It is an error if the file has fewer.
func ReadPart(r io.ReaderAt, at, size int64) ([]byte, error) {
	part := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(r, at, size), part)
	return part, err
}
