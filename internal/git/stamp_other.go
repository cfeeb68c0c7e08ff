//go:build !linux

package git

import (
	"io/fs"
	"os"
	"path/filepath"
)

// stamp tells whether a file has changed since it was looked at. The zero value is of one that is not there.
type stamp struct {
	size, mtime int64
	mode        fs.FileMode
}

// stampOf returns the stamp of the file at path, which may be a symbolic link.
func stampOf(path string) stamp {
	st, err := os.Lstat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{st.Size(), st.ModTime().UnixNano(), st.Mode()}
}

// stampsBelow returns the stamps of files with names relative to root.
func stampsBelow(root string, names []string) []stamp {
	stamps := make([]stamp, len(names))
	for i, name := range names {
		stamps[i] = stampOf(filepath.Join(root, filepath.FromSlash(name)))
	}
	return stamps
}
