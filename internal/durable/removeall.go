package durable

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RemoveAll removes a directory with everything in it, also where directories in it are read-only: a build or a tool
// makes them so. It returns the first error and removes as much as it can. A path that is not there is no error.
func RemoveAll(dir string) error {
	if err := RemoveContents(dir, ""); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(dir))
}

// RemoveContents removes everything in a directory but the entry that is named keep. A directory that is not there is
// no error, and a symbolic link in the place of one is: nothing outside of the directory is touched, whoever replaces
// it, or a part of it, by a link meanwhile.
func RemoveContents(dir, keep string) error {
	above, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return ignoreMissing(err)
	}
	defer above.Close()
	root, err := openDir(above, filepath.Base(dir))
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.Name() != keep {
			err = errors.Join(err, RemoveIn(root, e.Name()))
		}
	}
	return err
}

// openDir opens a directory below root, and first lets this user read and write it. A link is none.
func openDir(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "remove", Path: name, Err: errors.New("it is no directory")}
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = root.Chmod(name, 0o700) // what is then still not allowed is said below
	}
	dir, err := root.OpenRoot(name + "/") // a pipe is none
	if err != nil {
		return nil, err
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(now, info) {
		_ = dir.Close()
		return nil, cmp.Or(err, error(&fs.PathError{Op: "remove", Path: name, Err: errors.New("it was replaced")}))
	}
	return dir, nil
}

// RemoveIn is RemoveAll for a name below root. It changes permissions only where the entry cannot be removed without.
// It needs no more memory and descriptors where there are very many levels of directories: those that are deep are
// moved up first.
func RemoveIn(root *os.Root, name string) (first error) {
	const deep = 16
	isListed := map[string]bool{}
	for todo := []string{name}; len(todo) > 0; {
		at := todo[len(todo)-1]
		err := root.Remove(at)
		if err == nil || errors.Is(err, fs.ErrNotExist) || isListed[at] {
			first = cmp.Or(first, ignoreMissing(err))
			todo = todo[:len(todo)-1]
			delete(isListed, at)
			continue
		}
		isListed[at] = true
		dirs, err := removeFiles(root, at)
		first = cmp.Or(first, err)
		for _, dir := range dirs {
			dir = filepath.Join(at, dir)
			if up := name + "." + rand.Text(); strings.Count(at, string(filepath.Separator)) > deep &&
				root.Rename(dir, up) == nil {
				dir = up
			}
			todo = append(todo, dir)
		}
	}
	return first
}

// removeFiles removes what is no directory from a directory below root, and returns the names of the directories.
func removeFiles(root *os.Root, name string) (dirs []string, first error) {
	dir, err := openDir(root, name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for {
		// Where a file goes, a list that is being read may pass over another one.
		dirs, hasRemoved := dirs[:0], false
		for entries, err := list.ReadDir(1000); err == nil; entries, err = list.ReadDir(1000) {
			for _, e := range entries {
				if e.IsDir() {
					dirs = append(dirs, e.Name())
				} else if err := dir.Remove(e.Name()); err == nil {
					hasRemoved = true
				} else {
					first = cmp.Or(first, ignoreMissing(err))
				}
			}
		}
		if _, err := list.Seek(0, io.SeekStart); err != nil || !hasRemoved {
			return dirs, cmp.Or(first, err)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
