package gittest

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// templates are the repositories that Repo has made, by their files.
var templates = struct {
	sync.Mutex
	of map[string]tree
}{of: map[string]tree{}}

// A tree is a directory in memory.
type tree []entry

type entry struct {
	path string // relative to the directory
	mode fs.FileMode
	data []byte // of a regular file
}

// readTree reads the directory with all that is below it. It knows directories and regular files only.
func readTree(t testing.TB, dir string) (read tree) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		e := entry{path: rel, mode: info.Mode()}
		if !d.IsDir() {
			if e.data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		read = append(read, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// write makes the directory dir, which must not exist, with the content of the tree.
func (from tree) write(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range from {
		path := filepath.Join(dir, e.path)
		var err error
		if e.mode.IsDir() {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, e.data, e.mode.Perm()|0o200)
		}
		if err == nil && e.mode.Perm()&0o200 == 0 {
			err = os.Chmod(path, e.mode.Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
