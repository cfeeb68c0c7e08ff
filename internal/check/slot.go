package check

// The directory of a repository, below Options.Cache, has these:
//
//	repository     the path of the repository's root; its time says when a check began there last
//	cache/         what builds and tests of checks keep, for all slots
//	slot-N.lock    is held while a check runs in slot N
//	slot-N/REPO    the checkout of the last check, in a directory with the name of the repository
//	slot-N.git/    muster's own git directory of that checkout, with its index
//	slot-N.files   the list of its files, as they were before the check; while it is missing nothing is vouched for
//
// Beside the directories of repositories lies go-build, the build cache of Go for all of them.
//
// The git directory and the list lie outside of what a check can write. A file counts as unchanged only if the time
// of its last change is what it was, and no program can set that back. So neither a hidden change nor a time that was
// set back survives.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// place is where one check runs.
type place struct {
	dir       string // the checkout; it has the name of the repository
	temporary string // for temporary files; it goes with the check
	cache     string // for what builds and tests keep
	builds    string // the build cache of Go
	git       string // muster's own git directory of the checkout, which no check can write
	files     string // the list of the checkout's files; "" where nothing is kept
	release   func()
}

// The steps of a check in a slot are these. A process that is killed between two of them leaves a slot that the next
// one puts in order, because the list is there only while the checkout is as it says, but for what the check does:
//
//  1. The slot's lock is taken.
//  2. The list is read and removed. What is not on it goes, with the .git of the checkout.
//  3. git brings the checkout to the commit, with the index of last time, and the checkout gets a new .git.
//  4. The list is written, under another name first.
//  5. The check runs.
//  6. The temporary directory is removed, and the lock is given back.

// maxSlots is how many slots a repository has at most. A check that finds none free has a temporary directory.
const maxSlots = 16

// repositoryDir returns the directory of a repository below the root of all slots.
func repositoryDir(root, repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return filepath.Join(root, hex.EncodeToString(sum[:8]))
}

// slotLock is the lock file of the nth slot. Lock files are never deleted.
func slotLock(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("slot-%d.lock", n)) }

// acquire takes the first slot that is free, and a temporary directory where there is none.
//
// A slot is a directory with a fixed path. So programs that note paths and times of files in their caches, as go test
// does, find there what they have noted. Invariant: one check at a time runs in a slot, because it has the slot's lock.
// The kernel frees the lock of a process that was killed, and the next user of the slot puts it in order.
func (r *Runner) acquire(name string) (place, error) {
	if p, ok := r.acquireSlot(name); ok {
		return p, nil
	}
	top, remove, err := r.options.Dirs.Create()
	if err != nil {
		return place{}, err
	}
	// The caches of the user are none for a check here either: they go with it, so it is slow.
	dir := filepath.Join(top, "checkout", filepath.Base(r.options.Repo.Root()))
	cache := filepath.Join(top, "cache")
	if err := os.Mkdir(cache, 0o700); err != nil { // a sandbox shows what is there
		remove()
		return place{}, err
	}
	return place{dir: dir, temporary: temporaryDir(dir), cache: cache, builds: GoCache(cache),
		git: filepath.Join(top, "git"), release: remove}, nil
}

// acquireSlot takes a slot. ok is false where none can be had: it does not matter why.
func (r *Runner) acquireSlot(name string) (p place, ok bool) {
	root, repository := r.options.Cache, r.options.Repo.Root()
	if root == "" || isInside(root, repository) {
		return p, false
	}
	dir := repositoryDir(root, repository)
	// The caches of checks are nobody else's: a program of a lane is not told of them.
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o700); err != nil {
		return p, false
	}
	if err := os.WriteFile(filepath.Join(dir, "repository"), []byte(repository+"\n"), 0o600); err != nil {
		return p, false
	}
	files := durable.New(durable.OS{})
	for _, n := range r.slots(name) {
		unlock, err := files.TryLock(slotLock(dir, n))
		if err != nil {
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("slot-%d", n))
		p = place{dir: filepath.Join(name, filepath.Base(repository)), cache: filepath.Join(dir, "cache"),
			builds: GoCache(root), git: name + ".git", files: name + ".files"}
		p.temporary = temporaryDir(p.dir)
		p.release = func() {
			_ = durable.RemoveAll(p.temporary) // what stays is removed by the next user
			_ = unlock()
		}
		return p, true
	}
	return p, false
}

// Which slot a check has matters for its time, and not for what it says. A build knows its files by their paths, and
// go test does not believe what it has noted of a test in another directory. With three checks the first begins with
// the slots 1, 4, 7 and so on, so that the checks of two jobs at once do not take each other's.

// slots returns the numbers of the slots in the order in which a check tries them. Each of several checks begins with
// its own ones, so that it finds there what it has built.
func (r *Runner) slots(name string) (all []int) {
	checks := r.options.Check.Named
	own := slices.IndexFunc(checks, func(c muster.NamedCheck) bool { return c.Name == name })
	for n := 1; n <= maxSlots; n++ {
		if own >= 0 && (n-1)%len(checks) == own {
			all = append(all, n)
		}
	}
	for n := 1; n <= maxSlots; n++ {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// isInside reports whether a path lies in a directory, with links followed as far as it exists.
func isInside(path, dir string) bool {
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			rel, err := filepath.Rel(dir, real)
			return err != nil || filepath.IsLocal(rel)
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// temporaryDir is the directory for temporary files, beside the checkout in dir, which has the name of the repository.
func temporaryDir(dir string) string {
	name := "temporary"
	if strings.EqualFold(filepath.Base(dir), name) {
		name = "tmp"
	}
	return filepath.Join(filepath.Dir(dir), name)
}

// clean removes everything from a place that does not belong to the checkout that was made there last, so that git has
// only to bring that up to date. What it cannot be sure of goes.
func (p place) clean() error {
	top := filepath.Dir(p.dir)
	if p.files == "" {
		return nil // it is new
	}
	// A killed git leaves its lock. Nobody else has one: the slot is this process's.
	if err := os.Remove(filepath.Join(p.git, indexFile+".lock")); err != nil && !os.IsNotExist(err) {
		return err
	}
	known, err := readFileList(p.files)
	// While the slot is put in order the list is gone. So a slot in which somebody was killed meanwhile is made anew.
	if removeErr := os.Remove(p.files); removeErr != nil && !os.IsNotExist(removeErr) {
		return removeErr
	}
	if err == nil {
		if err = durable.RemoveContents(top, filepath.Base(p.dir)); err == nil {
			err = known.sweep(p.dir)
		}
	}
	if err == nil && !durable.IsMissing(filepath.Join(p.git, indexFile)) {
		return nil
	}
	return p.wipe()
}

// wipe removes everything from a slot.
func (p place) wipe() error {
	if err := os.Remove(p.files); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := durable.RemoveAll(p.git); err != nil {
		return err
	}
	top := filepath.Dir(p.dir)
	if info, err := os.Lstat(top); err == nil && !info.IsDir() {
		if err := os.Remove(top); err != nil {
			return err
		}
	}
	return durable.RemoveAll(top)
}

// indexFile is git's index in a git directory.
const indexFile = "index"

// maxIndex is how large an index may be: that of a million files has 100 MB.
const maxIndex = 1 << 30
