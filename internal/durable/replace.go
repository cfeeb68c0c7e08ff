package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/failpoint"
)

// Replace makes data the content of path: a reader sees the old or the new, also after a power loss.
func (f *Files) Replace(path string, data []byte) error {
	s, err := f.Stage(path, data)
	if err != nil {
		return err
	}
	return s.Replace()
}

// Create is Replace for a path that does not exist; where one does, it is kept and the error is Stale.
func (f *Files) Create(path string, data []byte) error {
	s, err := f.Stage(path, data)
	if err != nil {
		return err
	}
	return s.Create()
}

// Staged is a content that is durable beside its path, under a name of its own, and is not the path's yet.
// One of Replace, Create or Discard ends it.
type Staged struct {
	f          *Files
	temp, path string
}

// Temporary reports whether a file's name is one that Stage makes. A killed process leaves them behind.
func Temporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// Stage writes and syncs data beside path; missing directories are made.
func (f *Files) Stage(path string, data []byte) (*Staged, error) {
	if err := f.Ended(); err != nil {
		return nil, err
	}
	failpoint.HitFile(path, "put.begin")
	dir, base := filepath.Split(path)
	temp := filepath.Join(dir, "."+base+"."+strings.ToLower(rand.Text()[:12])+".tmp")
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := f.fs.OpenFile(temp, flag, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.MakeDir(filepath.Clean(dir)); err != nil {
			return nil, err
		}
		file, err = f.fs.OpenFile(temp, flag, 0o600)
	}
	if err != nil {
		return nil, failed(path, err)
	}
	if err = f.named(filepath.Clean(dir)); err != nil {
		file.Close()
		f.fs.Remove(temp)
		return nil, err
	}
	if _, err = file.Write(data); err != nil {
		file.Close()
		f.fs.Remove(temp)
		return nil, failed(path, err)
	}
	if err = f.synced(path, file.Sync()); err != nil {
		file.Close()
		f.fs.Remove(temp)
		return nil, err
	}
	if err = file.Close(); err != nil {
		f.fs.Remove(temp)
		return nil, failed(path, err)
	}
	failpoint.HitFile(path, "put.staged")
	return &Staged{f: f, temp: temp, path: path}, nil
}

// Replace gives the content the path's name, over what has it.
func (s *Staged) Replace() error {
	if err := s.f.Ended(); err != nil {
		s.Discard()
		return err
	}
	failpoint.HitFile(s.path, "put.compared")
	if err := s.f.fs.Rename(s.temp, s.path); err != nil {
		s.Discard()
		return failed(s.path, err)
	}
	return s.named()
}

// Create gives the content the path's name if nothing has it; else the error is Stale.
func (s *Staged) Create() error {
	defer s.Discard()
	if err := s.f.Ended(); err != nil {
		return err
	}
	failpoint.HitFile(s.path, "put.compared")
	err := s.f.fs.Link(s.temp, s.path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links. Between the look and the rename only a program that does not take our
		// locks could come in.
		if _, e := s.f.fs.Stat(s.path); e == nil {
			err = fs.ErrExist
		} else {
			err = s.f.fs.Rename(s.temp, s.path)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return muster.Errorf(muster.Stale, "%s exists already", s.path)
	}
	if err != nil {
		return failed(s.path, err)
	}
	return s.named()
}

// named makes the path's new name durable.
func (s *Staged) named() error {
	failpoint.HitFile(s.path, "put.renamed")
	defer failpoint.HitFile(s.path, "put.end")
	return s.f.syncDir(filepath.Dir(s.path))
}

// Discard removes the staged content.
func (s *Staged) Discard() { s.f.fs.Remove(s.temp) }

// Remove removes a file, durably. One that is not there is no error.
func (f *Files) Remove(path string) error {
	if err := f.Ended(); err != nil {
		return err
	}
	failpoint.HitFile(path, "remove.begin")
	defer failpoint.HitFile(path, "remove.end")
	err := f.fs.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed(path, err)
	}
	return f.syncDir(filepath.Dir(path))
}

// Rename moves a file, durably; the new name's directory is made. A file that is not there is fs.ErrNotExist.
func (f *Files) Rename(from, to string) error {
	if err := f.Ended(); err != nil {
		return err
	}
	source, target := filepath.Dir(from), filepath.Dir(to)
	if source != target {
		if err := f.MakeDir(target); err != nil {
			return err
		}
	}
	failpoint.HitFile(from, "move.begin")
	defer failpoint.HitFile(from, "move.end")
	err := f.fs.Rename(from, to)
	failpoint.HitFile(from, "move.moved")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", from, fs.ErrNotExist)
	}
	if err != nil {
		return failed(to, err)
	}
	if err := f.syncDir(target); err != nil || source == target {
		return err
	}
	return f.syncDir(source)
}

// Truncate cuts a file, durably.
func (f *Files) Truncate(path string, size int64) error {
	if err := f.Ended(); err != nil {
		return err
	}
	file, err := f.fs.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return failed(path, err)
	}
	defer file.Close()
	failpoint.HitFile(path, "cut.begin")
	defer failpoint.HitFile(path, "cut.end")
	if err := f.fs.Truncate(path, size); err != nil {
		return failed(path, err)
	}
	return f.synced(path, file.Sync())
}
