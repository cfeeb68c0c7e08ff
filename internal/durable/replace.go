package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/failpoint"
)

// Replace makes data the content of path. A reader sees the old or the new content, also after a power loss.
func (f *Files) Replace(path string, data []byte) error {
	s, err := f.Stage(path, data)
	if err != nil {
		return err
	}
	return s.Replace()
}

// Create is Replace for a path that does not exist. If it exists, it is kept and the error is Stale.
func (f *Files) Create(path string, data []byte) error {
	s, err := f.Stage(path, data)
	if err != nil {
		return err
	}
	return s.Create()
}

// Staged is a content that is durable under a temporary name beside its path. One of Replace, Create or Discard ends
// it. The temporary file is in the same directory, because a rename is atomic only within one file system.
type Staged struct {
	f          *Files
	temp, path string
}

// Stage writes and syncs data beside path. It makes missing directories. The content is durable before it can get its
// name, so that a power loss never leaves the name with half of it.
func (f *Files) Stage(path string, data []byte) (*Staged, error) {
	if err := f.Ended(); err != nil {
		return nil, err
	}
	if len(data) > MaxFile { // nobody could read it again
		return nil, muster.Errorf(muster.Invalid, "%s would have %d bytes: a state file has at most %d", path,
			len(data), MaxFile)
	}
	failpoint.HitFile(path, "put.begin")
	dir, base := filepath.Split(path)
	temp := filepath.Join(dir, TemporaryName(base))
	var file File
	err := f.openIn(temp, func() (err error) {
		file, err = f.fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return nil, writeError(path, err)
	}
	// The directory's own name comes first: a file whose directory is lost in a power loss is lost with it.
	err = f.syncName(filepath.Clean(dir))
	if err == nil {
		_, err = file.Write(data)
	}
	// The content is synced before the rename. A file system may otherwise write the new name first, and a power loss
	// leaves an empty file under it.
	if err == nil {
		err = f.checkSync(path, file.Sync())
	}
	// The file is closed whatever happened, and only the first error counts.
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = f.fs.Remove(temp)
		return nil, writeError(path, err)
	}
	failpoint.HitFile(path, "put.staged")
	return &Staged{f: f, temp: temp, path: path}, nil
}

// Replace gives the content the path's name, and replaces what has it.
func (s *Staged) Replace() error {
	return s.finish(func() error { return s.f.fs.Rename(s.temp, s.path) })
}

// Create gives the content the path's name if nothing has it; otherwise the error is Stale.
func (s *Staged) Create() error {
	err := s.finish(func() error {
		// A link fails if the name exists, and a rename does not. So of two processes that create the same document
		// only one succeeds, also without a lock.
		err := s.f.fs.Link(s.temp, s.path)
		if err == nil {
			s.Discard() // not after the sync: whoever reads a file with two names looks through the directory first
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		// A file system without hard links. Between the look and the rename only a program that does not take our
		// locks could come in.
		if _, err := s.f.fs.Stat(s.path); err == nil {
			return fs.ErrExist
		}
		return s.f.fs.Rename(s.temp, s.path)
	})
	if errors.Is(err, fs.ErrExist) {
		return muster.Errorf(muster.Stale, "%s exists already", s.path)
	}
	return err
}

// finish gives the content the path's name by put, and makes the name durable. Before that, a power loss may bring the
// old content back.
func (s *Staged) finish(put func() error) error {
	err := s.f.Ended()
	if err == nil {
		failpoint.HitFile(s.path, "put.compared")
		err = put()
	}
	if err != nil {
		s.Discard()
		return writeError(s.path, err)
	}
	failpoint.HitFile(s.path, "put.renamed")
	defer failpoint.HitFile(s.path, "put.end")
	return s.f.syncDir(filepath.Dir(s.path))
}

// Discard removes the staged content.
func (s *Staged) Discard() { _ = s.f.fs.Remove(s.temp) } // what stays is swept out as a dead process's

// Overwrite writes a file in place, without making it durable: a crash may leave any part of the data, or none. Errors:
// fs.ErrNotExist if its directory is missing.
func (f *Files) Overwrite(path string, data []byte) error {
	file, err := f.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = file.Write(data)
		err = errors.Join(err, file.Close())
	}
	return writeError(path, err)
}

// Remove removes a file, durably. A missing file is no error: a process that was killed after the removal does it
// again.
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
		return writeError(path, err)
	}
	return f.syncDir(filepath.Dir(path))
}

// Rename moves a file, durably, and makes the new name's directory. The new directory is synced before the old one, so
// that a crash in between leaves the file under two names rather than none. A missing file is fs.ErrNotExist.
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
		return writeError(to, err)
	}
	if err := f.syncDir(target); err != nil || source == target {
		return err
	}
	return f.syncDir(source)
}

// Truncate cuts a file, durably. The sync is of the file and not of its directory, because the size belongs to the
// file.
func (f *Files) Truncate(path string, size int64) error {
	if err := f.Ended(); err != nil {
		return err
	}
	file, err := f.fs.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return writeError(path, err)
	}
	defer func() { _ = file.Close() }()
	failpoint.HitFile(path, "cut.begin")
	defer failpoint.HitFile(path, "cut.end")
	if err := f.fs.Truncate(path, size); err != nil {
		return writeError(path, err)
	}
	return f.checkSync(path, file.Sync())
}
