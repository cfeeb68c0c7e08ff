package worktree

import (
	"errors"
	"fmt"
	"path/filepath"

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
