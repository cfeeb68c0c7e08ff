package gittest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// templates are the repositories of CopyRepo, by their files.
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

// makeTemplate has git make a repository with one commit of the files.
func makeTemplate(files map[string]string) (tree, error) {
	dir, err := os.MkdirTemp("", "template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := write(dir, files); err != nil {
		return nil, err
	}
	for _, args := range []string{"init -q -b main", "add -A", "commit -q --allow-empty -m start"} {
		if out, err := Try(dir, strings.Fields(args)...); err != nil {
			return nil, fmt.Errorf("git %s: %w\n%s", args, err, out)
		}
	}
	return readTree(dir)
}

// readTree reads the directory with all that is below it. It knows directories and regular files only.
func readTree(dir string) (read tree, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
	return read, err
}

// write puts the content of the tree into the directory dir, which it makes where there is none.
func (from tree) write(dir string) error {
	for _, e := range from {
		path := filepath.Join(dir, e.path)
		var err error
		if e.mode.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, e.data, e.mode.Perm()|0o200)
		}
		if err == nil && e.mode.Perm()&0o200 == 0 {
			err = os.Chmod(path, e.mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
