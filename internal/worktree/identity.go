package worktree

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/lazyregexp"
)

// A row of the index is a claim: other programs and members can write it, and a clone may bring one. Before anything is
// done with what it names, checkRow compares it with where its lane must be, and checkout.verify compares the directory
// with what git has registered. What does not agree is reported and kept.

// plainName matches the names of lanes, and also those that other programs choose and that are harmless.
var plainName = lazyregexp.New(`^[\pL\pN_][\pL\pN_.-]*$`)

// checkRow returns an Invalid error, which says what to do, unless the row names the directory and the branch that the
// lane of its name has: NAME directly below a lanes directory, and wt/NAME.
func (x *index) checkRow(lane muster.Lane) error {
	name, at := string(lane.Name), ""
	switch {
	case !plainName().MatchString(name):
		at = "has a name that no lane can have"
	case filepath.Base(lane.Path) != name || !x.isHome(filepath.Dir(lane.Path)):
		at = "names the directory " + lane.Path + ", where no lane of that name can be"
	case lane.Branch != branchName+name:
		at = "names the branch " + lane.Branch + ", which is no branch of that lane"
	default:
		return nil
	}
	return muster.Errorf(muster.Invalid, "the row of lane %q %s: nothing is done with what it names", name, at).
		WithHint("see who wrote it, then delete the row from %s", x.dir.Index())
}

// isHome reports whether lanes are made in dir, or were made there before the settings named another directory.
func (x *index) isHome(dir string) bool {
	return dir == x.home || isSamePath(dir, x.home) || isSamePath(dir, x.dir.Worktrees())
}

// errOtherWorktree is in the error for a directory that is a worktree of the repository, and not the lane.
var errOtherWorktree = errors.New("it is another worktree of this repository")

// checkOrigin refuses a worktree in the lane's place that has something else checked out than the lane's branch, unless
// the runtime made that branch or the worktree was on it before: then it is the lane, in which its owner has switched
// branches or is in a rebase. A worktree that the user has put there is the user's, whatever the row says. Logs of refs
// tell, because no clone brings them.
func (c checkout) checkOrigin(ctx context.Context) error {
	if git.MadeAt(c.repo, branchRef(c.lane)) != "" || git.HasPlace(c.repo.CommonDir(), c.lane.Path) {
		return nil
	}
	out, err := git.AskWorktree(ctx, c.repo, c.lane.Path, "reflog", "show", "--format=%gs", "HEAD", "--")
	if err == nil && strings.Contains("\n"+out, "\ncheckout: moving from "+c.lane.Branch+" to ") {
		return nil
	}
	return errOtherWorktree
}

// hasOtherRef reports whether the commit can be reached from HEAD or from a ref other than the given one.
func hasOtherRef(ctx context.Context, repo *git.Repo, commit, ref string) (bool, error) {
	for try := 1; ; try++ {
		out, err := repo.Run(ctx, repo.CommonDir(), "rev-list", "--max-count=1", "--single-worktree", commit, "--not",
			"--exclude="+ref, "--all")
		// git refuses the whole list when one of the refs goes while it reads them, and lanes go at any time.
		if err == nil || try == 2 {
			return out == "", err
		}
	}
}

// covers reports whether the commit kept, "" for none, has all that snapshot has: each of its commits, and each of its
// files as it is. Files that only kept has do not matter, and a snapshot that was made just now counts for its parents.
func covers(ctx context.Context, repo *git.Repo, kept, snapshot string) (bool, error) {
	if kept == "" {
		return false, nil
	}
	commits, err := repo.Run(ctx, repo.CommonDir(), "rev-list", snapshot, "--not", kept)
	if err != nil {
		return false, err
	}
	_, subject := contentOf(ctx, repo, snapshot)
	if commits = strings.TrimSpace(commits); commits != "" && (commits != snapshot || !isSnapshot(subject)) {
		return false, nil
	}
	files, err := repo.Run(ctx, repo.CommonDir(), "diff-tree", "-r", "-z", "--no-renames", "--name-only",
		"--diff-filter=d", "--ignore-submodules=none", kept, snapshot)
	return files == "", err
}
