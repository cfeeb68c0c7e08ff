package durable

import (
	"io/fs"
	"os"
)

// open opens a file. What has the name and is no file is ErrNotRegular.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if fi, err := os.Stat(name); err == nil && !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return os.OpenFile(name, flag, perm)
}

// makeDir makes a directory. Windows has no root whose files would have to be given away.
func makeDir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
