package git

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
)

// git guards a ref, the packed refs, a HEAD and an index by a file NAME.lock, which it removes when it ends. A git that
// is killed leaves it, and every later git fails. A lock on a ref that only the runtime moves is removed after a second
// (BreakLocks), and any other one at an age at which no living git holds it.
const (
	// abandonedAge is the age at which a lock on a ref that other programs move too is a dead git's. A living one holds
	// it for milliseconds, unless a hook runs meanwhile.
	abandonedAge = 10 * time.Second
	// abandonedPackedAge is that age for the lock on the packed refs. Packing takes long in a large repository, and
	// when its lock is broken, refs that were deleted meanwhile come back.
	abandonedPackedAge = 30 * time.Second
	// lockTimeout is how long to wait for a lock: until one that was just taken counts as abandoned.
	lockTimeout = abandonedPackedAge + 3*time.Second
)

const packedRefsLock = "packed-refs.lock"

// BreakLocks removes the locks that a killed git left on a ref, or on the refs below a directory of them such as
// refs/muster, after a second in which nobody removed them. The caller knows that no living process moves these refs.
func (r *Repo) BreakLocks(ctx context.Context, under string) error {
	locks := []string{refLock(r.common, under)}
	top := filepath.Join(r.common, filepath.FromSlash(under))
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			locks = append(locks, path)
		}
		return ignoreMissing(err)
	})
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the refs below %s cannot be read: %w", under, err)
	}
	return clearLocks(ctx, locks, true)
}

// AwaitLock waits until there is no lock on the ref, nor on the packed refs. It is for refs that other programs move
// too. A lock that a dead git left is removed when it is 10 seconds old. The error is Held when a living git may hold
// one.
func (r *Repo) AwaitLock(ctx context.Context, ref string) error {
	return clearLocks(ctx, []string{refLock(r.common, ref), filepath.Join(r.common, packedRefsLock)}, false)
}

// AwaitWorktreeLock is Repo.AwaitLock for the locks in the git directory of a worktree: on its index and its HEAD.
func AwaitWorktreeLock(ctx context.Context, gitDir string) error {
	return clearLocks(ctx, []string{filepath.Join(gitDir, "index.lock"), filepath.Join(gitDir, "HEAD.lock")}, false)
}

func refLock(common, ref string) string {
	return filepath.Join(common, filepath.FromSlash(ref)+".lock")
}

// clearLocks waits until each of the locks is gone or replaced, and removes those that a killed git has left. A lock
// that was replaced is a living git's, which has taken the next one. areOurs says that only this program moves these
// refs, and that none of its gits lives. Nothing is removed before a second has passed, however old a clock makes a
// lock look: a living git has let go of its lock long before, and to take one from it would break its transaction.
func clearLocks(ctx context.Context, paths []string, areOurs bool) error {
	var locks []lock
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			locks = append(locks, lock{path, info})
		}
	}
	started := time.Now()
	for _, l := range locks { // each of them is watched since then, while the first ones are waited for
		for try := 1; l.exists(); try++ {
			waited := time.Since(started)
			if waited >= time.Second && (areOurs || l.isAbandoned(waited)) {
				if err := ignoreMissing(os.Remove(l.path)); err != nil {
					return muster.Errorf(muster.Unavailable, "the lock of a killed git cannot be removed: %w", err)
				}
				break
			}
			if waited > lockTimeout {
				return muster.Errorf(muster.Held, "another git is at work on this repository and does not end: "+
					"%s has been there for %v", l.path, time.Since(l.info.ModTime()).Round(time.Second)).
					WithHint("if no git is running in this repository, remove %s", l.path)
			}
			if err := pause(ctx, min(try, 5)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lock is the file of a lock, as it was found.
type lock struct {
	path string
	info fs.FileInfo
}

// exists reports whether the lock is still there. One in its place is another lock.
func (l lock) exists() bool {
	now, err := os.Lstat(l.path)
	return err == nil && os.SameFile(now, l.info) && now.ModTime().Equal(l.info.ModTime())
}

// isAbandoned reports whether the lock is a dead git's. waited is how long it was watched: a clock that was set back
// makes a lock look young.
func (l lock) isAbandoned(waited time.Duration) bool {
	abandoned := abandonedAge
	if filepath.Base(l.path) == packedRefsLock {
		abandoned = abandonedPackedAge
	}
	return max(waited, time.Since(l.info.ModTime())) >= abandoned
}
