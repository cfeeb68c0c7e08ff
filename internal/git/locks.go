package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
)

// abandoned is the age at which a lock on a ref that others move too is a dead git's. A living one holds it for
// milliseconds, unless a hook runs meanwhile.
const abandoned = 10 * time.Second

// BreakLock removes the lock that a killed git left on a ref, after a second in which nobody removed it. The caller knows
// that nobody else can be moving that ref.
func (r *Repo) BreakLock(ctx context.Context, ref string) error {
	return breakLocks(ctx, []string{r.lockOf(ref)})
}

// BreakLocks is BreakLock for all refs below a directory of them, such as refs/muster.
func (r *Repo) BreakLocks(ctx context.Context, under string) error {
	var locks []string
	err := filepath.WalkDir(filepath.Join(r.common, filepath.FromSlash(under)), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			locks = append(locks, path)
		}
		return err
	})
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the refs below %s cannot be read: %w", under, err)
	}
	return breakLocks(ctx, locks)
}

// AwaitLock waits until no lock is on the ref, nor on the packed refs, which deleting any ref takes: one that is there
// for 10 seconds was left by a git that died, and is removed. For refs that other programs move too.
func (r *Repo) AwaitLock(ctx context.Context, ref string) error {
	return awaitLocks(ctx, []string{r.lockOf(ref), filepath.Join(r.common, "packed-refs.lock")})
}

// AwaitWorktreeLock is AwaitLock for a worktree's own locks: its index and its HEAD.
func (r *Repo) AwaitWorktreeLock(ctx context.Context, path string) error {
	dir := gitDirOf(path)
	if dir == "" {
		return nil
	}
	return awaitLocks(ctx, []string{filepath.Join(dir, "index.lock"), filepath.Join(dir, "HEAD.lock")})
}

// gitDirOf is the git directory of a linked worktree; "" when it cannot be read.
func gitDirOf(path string) string {
	file, err := os.ReadFile(filepath.Join(path, ".git"))
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(file)), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if dir = filepath.FromSlash(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir
}

func (r *Repo) lockOf(ref string) string {
	return filepath.Join(r.common, filepath.FromSlash(ref)+".lock")
}

// locksOf are the locks that a transaction takes.
func (r *Repo) locksOf(updates []RefUpdate) []string {
	locks := []string{filepath.Join(r.common, "packed-refs.lock")}
	for _, u := range updates {
		locks = append(locks, r.lockOf(u.Ref))
	}
	return locks
}

func breakLocks(ctx context.Context, locks []string) error {
	seen := map[string]fs.FileInfo{}
	for _, l := range locks {
		if st, err := os.Lstat(l); err == nil {
			seen[l] = st
		}
	}
	for try := 1; len(seen) > 0 && try <= 14; try++ {
		if err := pause(ctx, try); err != nil {
			return err
		}
		for l, was := range seen {
			if !still(l, was) {
				delete(seen, l) // its git lives, or has gone on to the next one
			}
		}
	}
	for l := range seen {
		if err := removeLock(l); err != nil {
			return err
		}
	}
	return nil
}

func awaitLocks(ctx context.Context, locks []string) error {
	for _, l := range locks {
		was, err := os.Lstat(l)
		// The watch counts too: a clock may have been set back since the lock was made.
		for began := time.Now(); err == nil && still(l, was) && max(time.Since(was.ModTime()), time.Since(began)) < abandoned; {
			if err := pause(ctx, 5); err != nil {
				return err
			}
		}
		if err == nil && still(l, was) {
			if err := removeLock(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// breakAbandoned removes those of the locks that are old. It does not wait.
func breakAbandoned(locks []string) error {
	for _, l := range locks {
		if st, err := os.Lstat(l); err == nil && time.Since(st.ModTime()) >= abandoned {
			if err := removeLock(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// still reports whether the lock is there and is the one that was seen.
func still(lock string, was fs.FileInfo) bool {
	now, err := os.Lstat(lock)
	return err == nil && os.SameFile(now, was) && now.ModTime().Equal(was.ModTime())
}

func removeLock(lock string) error {
	if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "the lock %s of a killed git cannot be removed: %w", lock, err)
	}
	return nil
}

func (r *Repo) lockedOut(updates []RefUpdate, cause error) error {
	e := muster.Errorf(muster.Unavailable, "a ref cannot be moved: %w", cause)
	for _, l := range r.locksOf(updates) {
		if _, err := os.Stat(l); err == nil {
			return e.WithHint("if no git is running in this repository, remove %s", l)
		}
	}
	return e
}
