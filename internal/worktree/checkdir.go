package worktree

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// leases are lock files. A process that begins something takes one under a new name, and writes the name down where it
// begins. A process that gets that lease later knows that the first one is dead. The leases guard nothing else.
type leases struct {
	files *durable.Files
	dir   string
}

// path returns the lock file of a lease. Rows and notes name leases, and may say anything.
func (l leases) path(name string) string { return filepath.Join(l.dir, filepath.Base(name)+".lock") }

// acquire takes a new lease of a kind. The kernel frees the lease of a process that dies.
func (l leases) acquire(kind string) (name string, release func(), err error) {
	name = kind + "-" + strings.ToLower(rand.Text())
	unlock, err := l.try(name)
	return name, func() {
		unlock()
		_ = os.Remove(l.path(name)) // no other lease has that name: a file that stays does no harm
	}, err
}

// try takes a lease. The error is Held when a living process has it.
func (l leases) try(name string) (release func(), err error) {
	unlock, err := l.files.TryLock(l.path(name))
	return func() { _ = unlock() }, err // a lock that cannot be given back ends with the process
}

// CheckDirs makes temporary directories outside the repository: those in which landing checks out the merged tree, and
// those for the temporary files of tools. Each holder of a lease has one note, a file that names its directory. The
// note is written before the directory is made, so that RemoveAbandoned finds what a killed process left.
type CheckDirs struct {
	root   string // of the repository
	leases leases
}

const (
	checkLease     = "check"         // the kind of lease that the makers of check directories hold
	checkDirPrefix = "muster-check-" // of the name of each check directory
)

// Create makes a directory and returns the function that removes it. The directory lies outside the repository, so that
// nothing above it looks like a part of one. Its path has no symbolic links.
func (d *CheckDirs) Create() (dir string, remove func(), err error) {
	defer func() {
		if err != nil {
			err = muster.Errorf(muster.Unavailable, "no temporary directory can be made: %w", err)
		}
	}()
	parent, err := d.parent()
	if err != nil {
		return "", nil, err
	}
	lease, release, err := d.leases.acquire(checkLease)
	if err != nil {
		return "", nil, err
	}
	note := filepath.Join(d.leases.dir, lease)
	dir = filepath.Join(parent, checkDirName(note))
	// The order is lease, note, directory: whatever exists is named by a note, and whoever gets the lease of a dead
	// process finds it.
	if err = d.leases.files.Replace(note, []byte(dir+"\n")); err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	remove = func() {
		_, _ = d.clear(note) // what cannot be removed now stays noted
		release()
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

// checkDirName returns the name of the only check directory that a note can name: a note that was
// forged or copied leads to no other. The name of a note is random, so no other user can make the directory first. Its
// own name is short, because programs make sockets below it, and the path of a socket may have 107 bytes.
func checkDirName(note string) string {
	sum := sha256.Sum256([]byte(note))
	return checkDirPrefix + hex.EncodeToString(sum[:9])
}

// parent is where directories are made: the system's, or beside the repository when that one lies in the repository.
func (d *CheckDirs) parent() (string, error) {
	parent, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(d.root, parent); err == nil && filepath.IsLocal(rel) {
		parent = filepath.Dir(d.root)
	}
	return filepath.Abs(parent)
}

// RemoveAbandoned removes the directories that dead processes left, and returns them. One that cannot be removed is
// left and stays noted.
func (d *CheckDirs) RemoveAbandoned() (removed []string, err error) {
	for _, note := range durable.Glob(d.leases.dir, checkLease+"-*") {
		lease := filepath.Base(note)
		if filepath.Ext(lease) == ".lock" {
			continue
		}
		// A note is written while its lease is held, so a lease that is free is that of a dead process.
		release, err := d.leases.try(lease)
		if errors.Is(err, muster.ErrHeld) {
			continue
		}
		if err != nil {
			return removed, err
		}
		dir, err := d.clear(note)
		release()
		if err != nil {
			continue
		}
		_ = os.Remove(d.leases.path(lease))
		if dir != "" {
			removed = append(removed, dir)
		}
	}
	return removed, nil
}

// clear removes the directory that a note names, and then the note. The directory is "" when the note names another one
// than its own. The caller has the lease, so the directory is nobody's.
func (d *CheckDirs) clear(note string) (dir string, err error) {
	data, _, err := d.leases.files.ReadFile(note)
	dir = strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != checkDirName(note) {
		return "", d.leases.files.Remove(note)
	}
	if err := durable.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, d.leases.files.Remove(note)
}
