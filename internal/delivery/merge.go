package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/text"
)

// How the work came to the branch.
const (
	FastForward = "fast-forward"
	MergeCommit = "merge"
	Nothing     = "nothing" // the branch had everything
)

// Merged is what Merge has done.
type Merged struct {
	Branch  string   `json:"branch"` // the user's, without refs/heads/
	Target  string   `json:"target"`
	How     string   `json:"how"`  // one of the words above
	From    string   `json:"from"` // the commit that the branch was at
	At      string   `json:"at"`   // the commit that it is at
	Commits []string `json:"commits"`
	Said    string   `json:"said,omitempty"` // what git and the user's hooks printed
}

// Merge takes the commit tip of the target to the branch of the checkout. onlyForward refuses what is no fast-forward.
//
// Errors: Held for uncommitted changes in the way, Invalid for conflicts and for branches that share no history. Then
// the branch and the files are as they were, and the hint says how to do it by hand.
func Merge(ctx context.Context, c Checkout, target, tip string, onlyForward bool) (m Merged, err error) {
	m = Merged{Branch: c.Branch, Target: target, How: Nothing, From: c.Head, At: c.Head, Commits: []string{}}
	// A commit is merged and not the branch: the target may move while git works, and what is told here is what came.
	has, err := c.repo.IsAncestor(ctx, tip, c.Head)
	if err != nil || has {
		return m, err
	}
	args := []string{"merge", "--ff-only", "-q", tip}
	isForward, err := c.repo.IsAncestor(ctx, c.Head, tip)
	if err != nil {
		return m, err
	}
	if !isForward {
		if onlyForward {
			return m, errDiverged(c.Branch, target)
		}
		if has, err = c.tryMerge(ctx, target, tip); err != nil || has {
			return m, err
		}
		args = []string{"merge", "--no-edit", "-q", "-m", mergeMessage(c.Branch, target), tip}
	}
	if m.Commits, err = c.Missing(ctx, tip); err != nil {
		return m, err
	}
	if m.Said, err = git.RunAsUser(ctx, c.dir, args...); err != nil {
		return m, c.explain(ctx, err, target, tip)
	}
	if m.How = MergeCommit; isForward {
		m.How = FastForward
	}
	m.At, err = c.repo.ResolveIn(ctx, c.dir, "HEAD")
	return m, err
}

// mergeMessage is the message that git merge would write for the branch.
func mergeMessage(branch, target string) string {
	text := fmt.Sprintf("Merge branch '%s'", target)
	if branch != "main" && branch != "master" {
		text += " into " + branch
	}
	return text
}

// errDiverged is the error of a branch that cannot be moved forward to the target.
func errDiverged(branch, target string) error {
	return muster.Errorf(muster.Stale, "%s and %s have diverged: each has commits that the other lacks", branch,
		target).WithHint("muster merge")
}

// tryMerge merges in memory. It refuses conflicts before anything is touched. has reports whether the merge would
// change nothing: after a squash or a rebase only the trees tell that the work is there.
func (c Checkout) tryMerge(ctx context.Context, target, tip string) (has bool, err error) {
	isRelated, err := c.repo.Related(ctx, c.Head, tip)
	if err == nil && !isRelated {
		err = muster.Errorf(muster.Invalid, "%s and %s have no commit in common, and git merges no such histories",
			c.Branch, target).WithHint("git merge --allow-unrelated-histories %s", text.ShellQuote(target))
	}
	if err != nil {
		return false, err
	}
	// In memory. The merge that git makes afterwards may still refuse: it also obeys the attributes of the checkout.
	tree, conflicts, err := c.repo.MergeTree(ctx, c.Head, tip)
	if err != nil {
		return false, err
	}
	if len(conflicts) > 0 {
		return false, errConflict(c.Branch, target, conflicts)
	}
	headTree, err := c.repo.Tree(ctx, c.Head)
	return tree == headTree, err
}

// errConflict is the error of a merge with conflicts in files.
func errConflict(branch, target string, files []string) error {
	return muster.Errorf(muster.Invalid, "%s and %s have both changed %s, and git cannot merge that by itself; "+
		"nothing was touched", branch, target, list(files)).
		WithHint("by hand:  git merge %s, resolve the conflicts, git add the files, git commit\n"+
			"give up:  git merge --abort", text.ShellQuote(target))
}

// Missing returns the commits of the tip that the branch lacks, the oldest first, without those behind a merge.
func (c Checkout) Missing(ctx context.Context, tip string) ([]string, error) {
	out, err := c.repo.Run(ctx, c.repo.CommonDir(), "rev-list", "--first-parent", "--reverse", tip, "^"+c.Head)
	return append([]string{}, strings.Fields(out)...), err
}

// explain says why git has refused the merge, after it has undone what git may have begun. What the user had
// uncommitted is compared here, because git's words are for people.
func (c Checkout) explain(ctx context.Context, cause error, target, tip string) error {
	exit, isExit := errors.AsType[*git.ExitError](cause)
	late := context.WithoutCancel(ctx) // an interruption leaves nothing half done
	if git.UnderWay(c.repo, c.dir) == "merge" {
		files, _ := c.repo.Run(late, c.dir, "diff", "--name-only", "--diff-filter=U", "-z") // only words of the message
		if _, err := git.RunAsUser(late, c.dir, "merge", "--abort"); err != nil {
			return muster.Errorf(muster.Unavailable, "the merge could not be finished (%w), and not undone: %w", cause,
				err).WithHint("git merge --abort")
		}
		if unmerged := git.SplitNUL(files); len(unmerged) > 0 {
			return errConflict(c.Branch, target, unmerged)
		}
	}
	if !isExit || ctx.Err() != nil {
		return cause
	}
	all, staged, err1 := c.uncommitted(late)
	changed, err2 := c.changed(late, c.Head, tip)
	if err := errors.Join(err1, err2); err != nil {
		return cause
	}
	const wayOut = "keep them:   git stash, muster merge, git stash pop\nor commit them first"
	if inTheWay := both(all, changed); len(inTheWay) > 0 {
		// What git does not know yet would be overwritten as well, and git stash leaves it where it is.
		known, err := c.repo.Run(late, c.dir, append([]string{"ls-files", "-z", "--"}, inTheWay...)...)
		if err == nil && known == "" {
			return muster.Errorf(muster.Held, "files that git does not track would be overwritten, so %s stays as it "+
				"is: %s", c.Branch, list(inTheWay)).WithHint("move them elsewhere, or commit them, then muster merge")
		}
		return muster.Errorf(muster.Held, "uncommitted changes in %s would be overwritten, so %s stays as it is",
			list(inTheWay), c.Branch).WithHint(wayOut)
	}
	if len(staged) > 0 {
		return muster.Errorf(muster.Held, "git merges nothing beside staged changes (%s), so %s stays as it is",
			list(staged), c.Branch).WithHint(wayOut)
	}
	return muster.Errorf(muster.Unavailable, "%s stays as it is, git has refused the merge: %s", c.Branch,
		strings.TrimSpace(exit.Stderr)).WithHint("by hand:  git merge %s", text.ShellQuote(target))
}
