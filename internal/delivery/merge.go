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
	At      string   `json:"to"`   // the commit that it is at
	Commits []string `json:"commits"`
	// Snapshot is the one of them with what was uncommitted when the run began.
	Snapshot string `json:"snapshot,omitempty"`
	Said     string `json:"said,omitempty"` // what git and the user's hooks printed
}

// Merge takes the commit tip of the target to the branch of the checkout. onlyForward refuses what is no fast-forward.
//
// Errors: Held for uncommitted changes in the way, Invalid for conflicts and for branches that share no history. Then
// the branch and the files are as they were, and the hint says how to do it by hand.
func Merge(ctx context.Context, c Checkout, target, tip string, onlyForward bool) (m Merged, err error) {
	m = Merged{Branch: c.Branch, Target: target, How: Nothing, From: c.Head, At: c.Head, Commits: []string{}}
	// A commit is merged and not the branch: the target may move while git works, and what is told here is what came.
	how, err := c.plan(ctx, target, tip, onlyForward)
	if err != nil || how == Nothing {
		return m, err
	}
	args := []string{"merge", "--ff-only", "-q", tip}
	if how == MergeCommit {
		args = []string{"merge", "--no-edit", "-q", "-m", mergeMessage(c.Branch, target), tip}
	}
	if m.Commits, err = c.Missing(ctx, tip); err != nil {
		return m, err
	}
	isNext, edited, staged, err := c.sinceSnapshot(ctx, tip)
	if err != nil {
		return m, err
	}
	if isNext && len(edited)+len(staged) == 0 {
		m.Said, err = c.throughSnapshot(ctx, tip, args)
	} else {
		m.Said, err = git.RunAsUser(ctx, c.dir, nil, args...)
	}
	late := context.WithoutCancel(ctx)
	if err != nil && !c.has(late, tip) {
		return m, c.explain(ctx, err, target, tip)
	}
	m.How, m.Snapshot = how, c.Snapshot // an interruption in a later hook undoes nothing
	m.At, err = c.repo.ResolveIn(late, c.dir, "HEAD")
	return m, err
}

// plan returns how the commit tip would come to the branch: one of the words of Merged.How. It changes nothing, and
// refuses what cannot come by itself.
func (c Checkout) plan(ctx context.Context, target, tip string, onlyForward bool) (how string, err error) {
	has, err := c.repo.IsAncestor(ctx, tip, c.Head)
	if err != nil || has {
		return Nothing, err
	}
	isForward, err := c.repo.IsAncestor(ctx, c.Head, tip)
	switch {
	case err != nil:
		return Nothing, err
	case isForward:
		return FastForward, nil
	case onlyForward:
		return Nothing, errDiverged(c.Branch, target)
	}
	if has, err = c.tryMerge(ctx, target, tip); err != nil || has {
		return Nothing, err
	}
	return MergeCommit, nil
}

// MayMerge reports whether Merge would bring something, and nothing uncommitted is in its way. It changes nothing. The
// user's git, which decides, may still refuse: a hook of theirs, for example.
func (c Checkout) MayMerge(ctx context.Context, target, tip string) (bool, error) {
	how, err := c.plan(ctx, target, tip, false)
	if err != nil || how == Nothing {
		return false, err
	}
	isNext, edited, own, err := c.sinceSnapshot(ctx, tip)
	if err != nil || isNext && len(edited)+len(own) == 0 {
		return err == nil, err
	}
	staged, inTheWay, err := c.inTheWay(ctx, tip)
	return len(inTheWay) == 0 && (how == FastForward || len(staged) == 0), err
}

// inTheWay returns the uncommitted files that a merge of tip would overwrite, and all that are staged, beside which git
// makes no merge commit.
func (c Checkout) inTheWay(ctx context.Context, tip string) (staged, inTheWay []string, err error) {
	all, staged, err := c.uncommitted(ctx)
	if err != nil {
		return nil, nil, err
	}
	changed, err := c.changed(ctx, c.Head, tip)
	return staged, both(all, changed), err
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
	var unmerged []string
	if git.UnderWay(c.repo, c.dir) == "merge" {
		files, _ := c.repo.Run(late, c.dir, "diff", "--name-only", "--diff-filter=U", "-z") // only words of the message
		if _, err := git.RunAsUser(late, c.dir, nil, "merge", "--abort"); err != nil {
			return muster.Errorf(muster.Unavailable, "the merge could not be finished (%w), and not undone: %w", cause,
				err).WithHint("git merge --abort")
		}
		unmerged = git.SplitNUL(files)
	}
	if len(unmerged) > 0 {
		return errConflict(c.Branch, target, unmerged)
	}
	if !isExit || ctx.Err() != nil {
		return cause
	}
	isNext, edited, own, err1 := c.sinceSnapshot(late, tip)
	staged, inTheWay, err2 := c.inTheWay(late, tip)
	if err := errors.Join(err1, err2); err != nil {
		return cause
	}
	switch {
	case isNext && len(edited)+len(own) == 0: // what is uncommitted was not in the way
		staged, inTheWay = nil, nil
	case isNext && len(inTheWay) > 0:
		return c.errSince(edited, own)
	}
	const wayOut = "keep them:   git %s, muster merge, git stash pop\nor commit them first"
	stash := "stash"
	if c.Snapshot != "" { // it may have new files
		stash = "stash -u"
	}
	if len(inTheWay) > 0 {
		// What git does not know yet would be overwritten as well, and git stash leaves it where it is.
		known, err := c.repo.Run(late, c.dir, append([]string{"ls-files", "-z", "--"}, inTheWay...)...)
		if err == nil && known == "" {
			return muster.Errorf(muster.Held, "files that git does not track would be overwritten, so %s stays as it "+
				"is: %s", c.Branch, list(inTheWay)).WithHint("move them elsewhere, or commit them, then muster merge")
		}
		return muster.Errorf(muster.Held, "uncommitted changes in %s would be overwritten, so %s stays as it is",
			list(inTheWay), c.Branch).WithHint(wayOut, stash)
	}
	if len(staged) > 0 {
		return muster.Errorf(muster.Held, "git merges nothing beside staged changes (%s), so %s stays as it is",
			list(staged), c.Branch).WithHint(wayOut, stash)
	}
	return muster.Errorf(muster.Unavailable, "%s stays as it is, git has refused the merge: %s", c.Branch,
		strings.TrimSpace(exit.Stderr)).WithHint("by hand:  git merge %s", text.ShellQuote(target))
}

// errSince is the error for what the user has edited or staged since the snapshot from which the work began. One of the
// lists has something.
func (c Checkout) errSince(edited, staged []string) error {
	if len(staged) > 0 {
		return muster.Errorf(muster.Held, "what is staged of %s is neither in HEAD nor in the snapshot from which the "+
			"work began, so %s stays as it is", list(staged), c.Branch).
			WithHint("commit it first, or take it out of the index:  git restore --staged FILE")
	}
	// With the snapshot on the branch only the later changes are uncommitted: the first command changes no file.
	return muster.Errorf(muster.Held, "%s changed since the snapshot from which the work began, and would be "+
		"overwritten, so %s stays as it is", list(edited)+text.Plural(len(edited), " has", " have"), c.Branch).
		WithHint("keep it:  git reset %.12s, git stash, muster merge, git stash pop", c.Snapshot)
}
