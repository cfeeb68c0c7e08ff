package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes a directory with everything in it, also where directories in it are read-only: a build or a tool
// makes them so. It returns the first error and removes as much as it can. A path that is not there is no error.
func RemoveAll(dir string) error {
	if err := RemoveContents(dir, ""); err != nil {
		return err
	}
	if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveContents removes everything in a directory but the entry that is named keep. A directory that is not there is
// no error, and a symbolic link in the place of one is: nothing outside of the directory is touched, whoever replaces a
// part of it by a link meanwhile.
func RemoveContents(dir, keep string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "remove", Path: dir, Err: errors.New("it is no directory")}
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(dir, 0o700) // what is then still not allowed is said below
	}
	root, err := os.OpenRoot(dir + string(filepath.Separator)) // a pipe is none
	if err != nil {
		return err
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

// RemoveIn is RemoveAll for a name below root. It changes permissions only where the entry cannot be removed without.
func RemoveIn(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil {
		return nil
	}
	// A directory is made writable before it is read, because WalkDir calls the function first.
	_ = fs.WalkDir(Dirs{root}, filepath.ToSlash(name), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(filepath.FromSlash(path), 0o700)
		}
		return nil
	})
	return root.RemoveAll(name)
}
