package worktree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster"
)

// checkPrefix begins the name of each directory that Outside makes.
const checkPrefix = "muster-check-"

// Outside makes a directory that does not lie in the repository, where nothing above it looks like a part of one, and
// returns the function that removes it. Where it is going to be is noted before it is made, so that Recover finds what a
// killed process left. The path has no symbolic links.
func (l *Lanes) Outside() (dir string, remove func(), err error) {
	fail := func(err error) (string, func(), error) {
		return "", nil, muster.Errorf(muster.Unavailable, "no directory for the check can be made: %w", err)
	}
	top, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return fail(err)
	}
	if rel, err := filepath.Rel(l.repo.Root(), top); err == nil && filepath.IsLocal(rel) {
		top = filepath.Dir(l.repo.Root())
	}
	if top, err = filepath.Abs(top); err != nil {
		return fail(err)
	}
	note, free, err := l.outsideLease()
	if err != nil {
		return fail(err)
	}
	dir = filepath.Join(top, checkPrefix+strings.ToLower(rand.Text()))
	err = l.clearOutside(note) // of a process that died
	if err == nil {
		err = l.files.Replace(note, []byte(dir+"\n"))
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		_ = free()
		return fail(err)
	}
	return dir, func() {
		_ = l.clearOutside(note) // what cannot be removed now stays noted
		_ = free()
	}, nil
}

// maxOutside is how many such directories processes may have at once.
const maxOutside = 1000

// outsideLease takes the first free lease of those who make such directories: whoever has one knows that the directory
// which its note names is nobody's. There are as many as were ever held at once.
func (l *Lanes) outsideLease() (note string, free func() error, err error) {
	for n := 1; n <= maxOutside; n++ {
		note = l.outsideNote(n)
		if free, err = l.files.TryLock(note + ".lock"); !errors.Is(err, muster.ErrHeld) {
			return note, free, err
		}
	}
	return "", nil, err
}

func (l *Lanes) outsideNote(n int) string {
	return filepath.Join(l.dir.Locks(), fmt.Sprintf("check-%d", n))
}

// ClearOutside removes the directories outside the repository that dead processes left, and says which. One that cannot be
// removed is left, and stays noted.
func (l *Lanes) ClearOutside() (removed []string, err error) {
	for n := 1; n <= maxOutside; n++ {
		note := l.outsideNote(n)
		if gone(note + ".lock") {
			break
		}
		if gone(note) {
			continue
		}
		free, err := l.files.TryLock(note + ".lock")
		if errors.Is(err, muster.ErrHeld) {
			continue // its maker lives
		}
		if err != nil {
			return removed, err
		}
		dir := l.noted(note)
		if err := l.clearOutside(note); err == nil && dir != "" {
			removed = append(removed, dir)
		}
		if err := free(); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// clearOutside removes the directory that a note names, and the note. The caller has its lease.
func (l *Lanes) clearOutside(note string) error {
	if gone(note) {
		return nil
	}
	if dir := l.noted(note); dir != "" {
		if err := removeAll(dir); err != nil {
			return err
		}
	}
	return l.files.Remove(note)
}

// noted is the directory that a note names; "" when it names none that can be one of ours.
func (l *Lanes) noted(note string) string {
	data, _, err := l.files.ReadFile(note)
	dir := strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), checkPrefix) {
		return ""
	}
	return dir
}

// removeAll removes a directory, also what a build made read-only in it.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
