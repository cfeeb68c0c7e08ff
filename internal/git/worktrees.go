package git

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
	"muster/internal/leftovers"
)

// Worktree is one working tree of the repository, as git has it registered.
type Worktree struct {
	Path     string
	Branch   string // refs/heads/...; "" when its HEAD is detached
	Locked   bool
	Prunable bool // its directory is gone
}

// Worktrees returns all worktrees, the main one first.
func (r *Repo) Worktrees(ctx context.Context) ([]Worktree, error) {
	// Listing reads the others' files: one that is just being added or removed can make it fail for an instant.
	out, err := r.retry(ctx, 6, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list the worktrees: %w", err)
	}
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
				Locked: has("locked"), Prunable: has("prunable")})
		}
	}
	return all, nil
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
	if err != nil || !r.hasRefFiles() {
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
		if _, isPlain := r.refValue(other); !isSymbolic || other == branch || !isPlain { // it may lead to the branch
			return false
		}
	}
	return true
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
	admin := DirOf(path)
	if err := LinkKeys(r.common, admin); err != nil {
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
	if err := p.CopyIndex(filepath.Join(admin, "index")); err != nil {
		return err
	}
	tracked, err := r.Do(ctx, Call{Dir: r.common, Env: indexOf(admin),
		Args: append([]string{"ls-files", "-z", "--"}, leftovers.Pathspecs()...)})
	if err == nil {
		_, err = p.LeaveOut(leftovers.Patterns(SplitNUL(tracked)))
	}
	if err != nil || ref == "" {
		return err
	}
	return r.hideRepositories(ctx, indexOf(admin), commit)
}

// LinkKeys lets git-crypt find its keys from the git directory gitDir: it looks for them there, and they lie in the one
// that all worktrees share.
func LinkKeys(common, gitDir string) error {
	keys := filepath.Join(common, "git-crypt")
	if st, err := os.Lstat(keys); err != nil || !st.IsDir() {
		return nil
	}
	if err := linkTo(filepath.Join(gitDir, "git-crypt"), keys); err != nil {
		return muster.Errorf(muster.Unavailable, "git-crypt's keys cannot be linked to: %w", err)
	}
	return nil
}

// RemoveWorktree removes a linked worktree with everything in it. One that is gone already is no error; one that is
// locked is, and so is a directory with files that is no worktree of this repository: nothing in it is touched.
func (r *Repo) RemoveWorktree(ctx context.Context, path string) error {
	if admin := registrationOf(r.common, path); admin != "" && !durable.IsMissing(filepath.Join(admin, "locked")) {
		return muster.Errorf(muster.Held, "the worktree %s is locked", path)
	}
	return r.UndoWorktree(ctx, path)
}

// UndoWorktree is RemoveWorktree for one that was being made, which is locked meanwhile: registered, half registered or
// not at all.
//
// The files go first, then the .git file, and the registration last. A removal that is cut off, or that meets something
// which cannot be removed, leaves a worktree that git still knows, so that it can be tried again.
func (r *Repo) UndoWorktree(ctx context.Context, path string) error {
	if AdminDir(r.common, path) != "" {
		err := durable.RemoveContents(path, ".git")
		if err == nil {
			err = ignoreMissing(os.Remove(filepath.Join(path, ".git")))
		}
		if err != nil {
			return muster.Errorf(muster.Unavailable, "the files of the worktree %s cannot be removed: %w", path, err)
		}
	}
	if err := ignoreMissing(os.Remove(path)); err != nil {
		return muster.Errorf(muster.Held, "%s holds files that git knows nothing of", path)
	}
	return removeRegistrations(ctx, r.common, path)
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
	_ = os.Remove(filepath.Join(common, "worktrees")) // where it is empty, as git does
	return nil
}
