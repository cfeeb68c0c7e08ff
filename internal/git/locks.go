package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
)

// abandoned is the age at which a lock on a ref that others move too is a dead git's. A living one holds it for
// milliseconds, unless a hook runs meanwhile.
const abandoned = 10 * time.Second

// abandonedPacked is the same for the lock on the packed refs, where the system does not tell whether a git lives that may
// hold it: packing takes long in a large repository, and if its lock is broken, refs that were deleted meanwhile come back.
const abandonedPacked = 10 * time.Minute

// patience is how long to wait for locks: until one that was taken just before is abandoned.
const patience = abandoned + 3*time.Second

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

// AwaitLock waits until no lock is on the ref, nor on the packed refs, which deleting any ref takes: one that a git left
// that died is removed when it is 10 seconds old. For refs that other programs move too. Held: a git that lives may hold
// the packed refs.
func (r *Repo) AwaitLock(ctx context.Context, ref string) error {
	return awaitLocks(ctx, []string{r.lockOf(ref), filepath.Join(r.common, packedRefsLock)})
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
	locks := []string{filepath.Join(r.common, packedRefsLock)}
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
	for _, l := range watchLocks(locks) {
		if !l.there() {
			continue
		}
		for was, began := l.was, time.Now(); still(l.path, was); { // else its git lives, or has gone on to the next one
			if err := l.breakAbandoned(); err != nil {
				return err
			}
			if time.Since(began) > patience {
				return muster.Errorf(muster.Held, "another git is at work on this repository and does not end: %s has been there for %v", l.path,
					time.Since(was.ModTime()).Round(time.Second)).WithHint("%s", l.hint())
			}
			if err := pause(ctx, 5); err != nil {
				return err
			}
		}
	}
	return nil
}

const packedRefsLock = "packed-refs.lock"

// watched is a lock that somebody waits for.
type watched struct {
	path    string
	was     fs.FileInfo // the lock as it was seen first; nil: it was not there
	since   time.Time   // when: a clock may have been set back since the lock was made
	holders []holder    // the gits that may hold it: alive when it was seen first, and ever since
	unknown bool        // the system does not tell of any
}

func watchLocks(paths []string) []*watched {
	var all []*watched
	for _, p := range paths {
		all = append(all, &watched{path: p})
	}
	return all
}

// there looks at the lock. Only the packed refs' may be held for long by a git that lives.
func (l *watched) there() bool {
	now, err := os.Lstat(l.path)
	if err != nil {
		l.was = nil
		return false
	}
	first := l.was == nil || !os.SameFile(now, l.was) || !now.ModTime().Equal(l.was.ModTime())
	if first {
		l.was, l.since = now, time.Now()
	}
	if filepath.Base(l.path) == packedRefsLock {
		l.look(first)
	}
	return true
}

// look asks which gits live that may hold the lock.
func (l *watched) look(first bool) {
	now, known := gitsOn(filepath.Dir(l.path), l.was)
	l.unknown = !known
	if first {
		l.holders = now
		return
	}
	l.holders = slices.DeleteFunc(l.holders, func(h holder) bool { return !slices.Contains(now, h) })
}

// abandoned reports whether the lock is a dead git's, as it was looked at last.
func (l *watched) abandoned() bool {
	age := max(time.Since(l.was.ModTime()), time.Since(l.since))
	if l.unknown {
		return age >= abandonedPacked
	}
	return age >= abandoned && len(l.holders) == 0
}

// breakAbandoned removes the lock if a dead git left it. It does not wait.
func (l *watched) breakAbandoned() error {
	if !l.there() || !l.abandoned() {
		return nil
	}
	return removeLock(l.path)
}

// hint says who may hold the lock and what to do.
func (l *watched) hint() string {
	if len(l.holders) > 0 {
		return fmt.Sprintf("git (process %d) may hold it: let it end, or end it", l.holders[0].pid)
	}
	return "if no git is running in this repository, remove " + l.path
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

func lockedOut(locks []*watched, cause error) error {
	e := muster.Errorf(muster.Unavailable, "a ref cannot be moved: %w", cause)
	for _, l := range locks {
		if l.there() {
			return e.WithHint("%s", l.hint())
		}
	}
	return e
}
