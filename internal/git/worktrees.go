package git

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
)

// Worktree is one working tree of the repository, as git has it registered.
type Worktree struct {
	Path     string
	Branch   string // refs/heads/...; "" when its HEAD is detached
	Bare     bool
	Locked   bool
	Prunable bool // its directory is gone
}

// Worktrees returns all worktrees, the main one first.
func (r *Repo) Worktrees(ctx context.Context) ([]Worktree, error) {
	if w, isOnly := onlyWorktree(r); isOnly {
		return []Worktree{w}, nil
	}
	// Listing reads the others' files: one that is just being added or removed can make it fail for an instant.
	out, err := r.retry(ctx, 6, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list the worktrees: %w", err)
	}
	return parseWorktrees(out), nil
}

// retry runs git in the common directory, again while it fails, at most so many times.
func (r *runner) retry(ctx context.Context, times int, args ...string) (string, error) {
	for try := 1; ; try++ {
		out, err := r.Run(ctx, r.common, args...)
		if !isExit(err) || try == times {
			return out, err
		}
		if err := pause(ctx, try); err != nil {
			return "", err
		}
	}
}

// onlyWorktree returns the main worktree. isOnly is false where there are linked ones, or where only git can tell.
// A run begins with this question, most often in a repository without lanes.
func onlyWorktree(r *Repo) (w Worktree, isOnly bool) {
	if !durable.IsMissing(filepath.Join(r.common, "worktrees")) || filepath.Join(r.root, ".git") != r.common {
		return w, false
	}
	w = Worktree{Path: r.root, Branch: r.files.head()}
	return w, w.Branch != "" && r.files.commit(w.Branch) != ""
}

// CheckedOut returns the path of the worktree that has the branch (refs/heads/...) checked out, "" when none has.
func (r *Repo) CheckedOut(ctx context.Context, branch string) (string, error) {
	if IsNowhere(r, branch) {
		return "", nil
	}
	all, err := r.Worktrees(ctx)
	for _, w := range all {
		if w.Branch == branch && !w.Prunable {
			return w.Path, nil
		}
	}
	return "", err
}

// IsNowhere reports that no worktree has the branch (refs/heads/...) checked out, as the files in which each keeps its
// HEAD say. It is false where one may have it, and where only git can tell.
func IsNowhere(r *Repo, branch string) bool {
	admins, err := registrations(r.common)
	if err != nil || !r.files.areFiles() {
		return false
	}
	for _, admin := range append(admins, r.common) {
		// A symbolic link is a symbolic ref to git, and what is read through it looks like a commit.
		head := filepath.Join(admin, "HEAD")
		if st, err := os.Lstat(head); err != nil || !st.Mode().IsRegular() {
			return false
		}
		at := readLine(head)
		if at != "" && IsID(at) {
			continue // detached
		}
		other, isSymbolic := strings.CutPrefix(at, "ref: ")
		if !isSymbolic || other == branch {
			return false
		}
		st, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(other)))
		isLink := err == nil && !st.Mode().IsRegular() || err != nil && !errors.Is(err, os.ErrNotExist)
		if _, isPlain := r.files.branch(other); isLink || !isPlain {
			return false // it may lead to the branch
		}
	}
	return true
}

// parseWorktrees reads the output of git worktree list --porcelain -z.
func parseWorktrees(out string) []Worktree {
	var all []Worktree
	for block := range strings.SplitSeq(out, "\x00\x00") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(block, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			fields[key] = value
		}
		has := func(key string) bool { _, ok := fields[key]; return ok }
		if has("worktree") {
			all = append(all, Worktree{Path: filepath.FromSlash(fields["worktree"]), Branch: fields["branch"],
				Bare: has("bare"), Locked: has("locked"), Prunable: has("prunable")})
		}
	}
	return all
}

// AddWorktree checks a commit out at path, an empty or missing directory: on branch (a name below refs/heads/, which
// exists), or detached when branch is "". Several may be added at once.
func (r *Repo) AddWorktree(ctx context.Context, path, branch, commit string) error {
	if err := RemovePlace(r, path); err != nil { // of an earlier worktree of that name
		return err
	}
	args := []string{"worktree", "add", "-q", "--force", "--no-checkout", path, branch}
	if branch == "" {
		args = append(args[:5], "--detach", path, commit)
	}
	// --force: the path may still be registered for a worktree that a killed removal has deleted, or the branch checked
	// out there. Two that are added at once can meet in the directory .git/worktrees, and one of them fails: that one
	// is tried again.
	if _, err := r.retry(ctx, 8, args...); err != nil {
		return err
	}
	if err := LinkKeys(r.common, DirOf(path)); err != nil {
		return err
	}
	ref := ""
	if branch != "" {
		ref = "refs/heads/" + branch
	}
	p, err := OpenPlace(r, path, ref)
	if err != nil {
		return err
	}
	if _, err := p.Run(ctx, "reset", "-q", "--hard", "--no-recurse-submodules"); err != nil {
		return err
	}
	// No command has run there yet, so the user's own git may have the index, which knows the times of the files.
	admin := DirOf(path)
	if err := p.CopyIndex(filepath.Join(admin, "index")); err != nil || ref == "" {
		return err
	}
	return hideRepositories(ctx, r, indexOf(admin), commit)
}

// LinkKeys lets git-crypt find its keys from the git directory gitDir: it looks for them there, and they lie in the one
// that all worktrees share.
func LinkKeys(common, gitDir string) error {
	keys := filepath.Join(common, "git-crypt")
	if st, err := os.Lstat(keys); err != nil || !st.IsDir() {
		return nil
	}
	to, err := filepath.Rel(gitDir, keys) // the repository may move
	if err == nil {
		err = os.Symlink(to, filepath.Join(gitDir, filepath.Base(keys)))
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return muster.Errorf(muster.Unavailable, "git-crypt's keys cannot be linked to: %w", err)
	}
	return nil
}

// RemoveWorktree removes a linked worktree with everything in it. One that is gone already is no error; one that is
// locked is, and so is a directory with files that is no worktree of this repository: nothing in it is touched.
//
// The files go first and the .git file after them. A removal that is cut off, or that meets something which cannot be
// removed, leaves a worktree that git still knows, so that it can be tried again.
func (r *Repo) RemoveWorktree(ctx context.Context, path string) error {
	if ownerOf(linkedDir(path)) == r.common { // a process died while a command ran there
		if err := ReplaceLink(r.common, path); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		if err := removeFiles(r.common, path); err != nil {
			return muster.Errorf(muster.Unavailable, "the files of the worktree %s cannot be removed: %w", path, err)
		}
		_, err := r.Run(ctx, r.common, "worktree", "remove", "--force", path)
		if err == nil || !isExit(err) {
			return err
		}
		w, found, lerr := r.WorktreeAt(ctx, path)
		if lerr != nil {
			return lerr
		}
		switch {
		case !found && durable.IsMissing(path):
			return removeRegistrations(ctx, r.common, path)
		case w.Locked:
			return err
		case try == 4:
			// git removes .git before it removes the directory, and may have been killed in between. The tries before
			// give a git that is alive the time to end. Only an empty directory is removed without a .git.
			if derr := os.Remove(path); derr != nil && !errors.Is(derr, os.ErrNotExist) {
				return err
			}
			return removeRegistrations(ctx, r.common, path)
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// removeFiles removes all that is in a worktree but its .git file. It does nothing where the directory and this
// repository do not name each other, and where the worktree is locked: what becomes of these is for git to say.
func removeFiles(common, path string) error {
	admin := AdminDir(common, path)
	if admin == "" {
		return nil
	}
	if !durable.IsMissing(filepath.Join(admin, "locked")) {
		return nil
	}
	return durable.RemoveContents(path, ".git")
}

// WorktreeAt returns the registered worktree with that path. A directory that exists and is not registered is none.
func (r *Repo) WorktreeAt(ctx context.Context, path string) (w Worktree, found bool, err error) {
	all, err := r.Worktrees(ctx)
	for _, w := range all {
		if filepath.Clean(w.Path) == filepath.Clean(path) {
			return w, true, nil
		}
	}
	return Worktree{}, false, err
}

// pause waits before another try, longer each time, and at random so that two processes do not meet again.
func pause(ctx context.Context, try int) error {
	wait := time.Duration(try) * 10 * time.Millisecond
	_ = clock.Sleep(ctx, wait/2+rand.N(wait))
	return context.Cause(ctx)
}

// UndoWorktree takes back a worktree that was being made and was never used: registered, half registered or not at all.
// It leaves a directory with files that git does not know, and returns an error.
func (r *Repo) UndoWorktree(ctx context.Context, path string) error {
	// A git that outlived its parent may still be writing there. A lock in any other git directory is not ours to
	// break.
	if dir := DirOf(path); filepath.Dir(dir) == filepath.Join(r.common, "worktrees") {
		if err := breakLocks(ctx, []string{filepath.Join(dir, "index.lock")}, 2*time.Second); err != nil {
			return err
		}
	}
	// A registration may be missing, half written, or complete without files.
	_, found, err := r.WorktreeAt(ctx, path)
	if err != nil {
		return err
	}
	if found {
		// Twice --force: one that was interrupted while it was being made is still locked.
		_, err = r.Run(ctx, r.common, "worktree", "remove", "--force", "--force", path)
		if err != nil && !isExit(err) {
			return err
		}
	}
	if derr := os.Remove(path); derr == nil || errors.Is(derr, os.ErrNotExist) {
		return removeRegistrations(ctx, r.common, path)
	}
	if err == nil {
		err = muster.Errorf(muster.Held, "%s holds files that git knows nothing of", path)
	}
	return err
}

// removeRegistrations removes the registrations of a worktree whose directory is gone: those that name its path, and
// those of its name that a killed git left without a path.
func removeRegistrations(ctx context.Context, common, path string) error {
	all, err := registrations(common)
	if err != nil {
		return err
	}
	for _, admin := range all {
		// git names a registration like the directory, with a number behind it where that is taken.
		number, isNamesake := strings.CutPrefix(filepath.Base(admin), filepath.Base(path))
		isNamesake = isNamesake && strings.Trim(number, "0123456789") == ""
		link := linkOf(admin)
		for try := 1; link == "" && isNamesake && try <= 15; try++ { // a git that is alive writes the path at once
			if err := pause(ctx, try); err != nil {
				return err
			}
			link = linkOf(admin)
		}
		if link != filepath.Join(path, ".git") && (link != "" || !isNamesake) {
			continue
		}
		if err := os.RemoveAll(admin); err != nil {
			return muster.Errorf(muster.Unavailable, "the registration of the worktree %s cannot be removed: %w",
				path, err)
		}
	}
	return nil
}
