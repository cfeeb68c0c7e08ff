package worktree

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"muster"
	"muster/internal/durable"
)

// leases are numbered lock files. A process takes the first free one of a kind and writes its name where it begins
// something; whoever gets that lease later knows that the process is dead. The leases guard nothing else, and there
// are as many files as were ever held at once.
type leases struct {
	files *durable.Files
	dir   string
}

// maxLeases is how many leases of one kind may be held at once. A process holds one for each lane that it is
// making, and one for each check that it runs.
const maxLeases = 1000

// leaseName returns the name of the nth lease of a kind.
func leaseName(kind string, n int) string { return fmt.Sprintf("%s-%d", kind, n) }

// path returns the lock file of a lease.
func (l leases) path(name string) string { return filepath.Join(l.dir, name+".lock") }

// acquire takes the first free lease of a kind. The kernel frees the lease of a process that dies, so the caller may
// get one whose name still stands in what that process left: the caller must deal with that first.
func (l leases) acquire(kind string) (name string, release func(), err error) {
	for n := 1; n <= maxLeases; n++ {
		name = leaseName(kind, n)
		release, err = l.try(name)
		if !errors.Is(err, muster.ErrHeld) {
			return name, release, err
		}
	}
	return "", nil, err
}

// try takes a lease. The error is Held when a living process has it.
func (l leases) try(name string) (release func(), err error) {
	unlock, err := l.files.TryLock(l.path(name))
	if err != nil {
		return nil, err
	}
	return func() { _ = unlock() }, nil // a lock that cannot be given back ends with the process
}

// isHeld reports whether a living process has the lease. Unlike try it takes nothing, so a process that only looks
// never keeps another one from working.
func (l leases) isHeld(name string) (bool, error) { return l.files.Locked(l.path(name)) }

// CheckDirs makes temporary directories outside the repository: those in which landing checks out the merged tree, and
// those for the temporary files of tools. Each holder of a lease has one note, a file that names its directory. The
// note is written before the directory is made, so that RemoveAbandoned finds what a killed process left.
type CheckDirs struct {
	root   string // of the repository
	leases leases
}

const (
	// checkLease is the kind of lease that the makers of check directories hold.
	checkLease = "check"
	// checkDirPrefix begins the name of each check directory.
	checkDirPrefix = "muster-check-"
)

// Create makes a directory for a check and returns the function that removes it. The directory lies outside the
// repository, so that nothing above it looks like a part of one. Its path has no symbolic links.
func (d *CheckDirs) Create() (dir string, remove func(), err error) {
	return d.create("directory for the check", rand.Text())
}

// CreateTemporary is Create for temporary files. The name is short, because programs make sockets below the directory,
// and the path of a socket may have 107 bytes.
func (d *CheckDirs) CreateTemporary() (dir string, remove func(), err error) {
	return d.create("temporary directory", rand.Text()[:10])
}

// create makes a directory of a random name, so that no other user of a shared temporary directory can make it first.
func (d *CheckDirs) create(what, random string) (dir string, remove func(), err error) {
	defer func() {
		if err != nil {
			err = muster.Errorf(muster.Unavailable, "no %s can be made: %w", what, err)
		}
	}()
	parent, err := d.parent()
	if err != nil {
		return "", nil, err
	}
	lease, release, err := d.acquire()
	if err != nil {
		return "", nil, err
	}
	note := filepath.Join(d.leases.dir, lease)
	dir = filepath.Join(parent, checkDirName(note, strings.ToLower(random)))
	// The order is lease, note, directory: whatever exists is named by a note, and whoever gets the lease of a dead
	// process finds it.
	if err = d.leases.files.Replace(note, []byte(dir+"\n")); err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return dir, func() {
		_, _ = d.clear(note) // what cannot be removed now stays noted
		release()
	}, nil
}

// acquire takes a lease and removes the directory that its last holder, which has died, left. A lease whose directory
// the system does not let this user remove is left noted, and the next one is taken.
func (d *CheckDirs) acquire() (lease string, release func(), err error) {
	for {
		if lease, release, err = d.leases.acquire(checkLease); err != nil {
			return "", nil, err
		}
		_, err = d.clear(filepath.Join(d.leases.dir, lease))
		if err == nil {
			return lease, release, nil
		}
		// Held until the end, so that the next turn takes another one.
		defer release()
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EROFS) {
			return "", nil, err
		}
	}
}

// checkDirName returns the name of the check directory with that random text that a note can name. The name is made of
// both, so a note that somebody else has written leads to no directory but those that it has made.
func checkDirName(note, random string) string {
	sum := sha256.Sum256([]byte(note + "\x00" + random))
	return checkDirPrefix + random + "-" + hex.EncodeToString(sum[:4])
}

// hasMade reports whether a directory has a name that only the note gives.
func hasMade(note, dir string) bool {
	random, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), checkDirPrefix), "-")
	return filepath.Base(dir) == checkDirName(note, random)
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
	for n := 1; ; n++ {
		lease := leaseName(checkLease, n)
		if durable.IsMissing(d.leases.path(lease)) {
			return removed, nil // leases are taken in order: no later one was ever held
		}
		// Whoever gets the lease may clear what its last holder noted; nobody else can note anything meanwhile.
		release, err := d.leases.try(lease)
		if errors.Is(err, muster.ErrHeld) {
			continue // its maker lives
		}
		if err != nil {
			return removed, err
		}
		if dir, err := d.clear(filepath.Join(d.leases.dir, lease)); err == nil && dir != "" {
			removed = append(removed, dir)
		}
		release()
	}
}

// clear removes the directory that a note names, and then the note. It returns "" for the directory when the note names
// none that it has made. The caller has the lease, so the directory is nobody's.
func (d *CheckDirs) clear(note string) (dir string, err error) {
	data, _, err := d.leases.files.ReadFile(note)
	dir = strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), checkDirPrefix) {
		return "", d.leases.files.Remove(note)
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its maker died before it was made, or after it was removed
	case err != nil:
		return "", err
	case !info.IsDir() || !hasMade(note, dir):
		dir = ""
	default:
		if err := durable.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	return dir, d.leases.files.Remove(note)
}
