package landing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/text"
)

// RevertConflict says that a landed commit cannot be taken back, because later commits have changed the same lines.
type RevertConflict struct {
	Commit string   // the landed one
	Files  []string // in conflict
	Later  []string // the commits of the target that have changed these files since, the latest first
}

// Error names the commit and the files.
func (e *RevertConflict) Error() string {
	return fmt.Sprintf("%.7s cannot be taken back: what it has changed in %s was changed again since", e.Commit,
		text.List(e.Files, 5))
}

// Revert makes a commit on tip that takes back landed commits, as git revert does, the latest first. It moves no ref
// and needs no checkout. Of a merge commit it takes back what that has brought to the target. Errors: *RevertConflict,
// NotFound when a commit is not on the target, Invalid when nothing of the commits is there any more.
func Revert(ctx context.Context, repo *git.Repo, tip string, landed []string, message string) (string, error) {
	order, err := latestFirst(ctx, repo, tip, landed)
	if err != nil {
		return "", err
	}
	tree, err := repo.Tree(ctx, tip)
	if err != nil {
		return "", err
	}
	before := tree
	for _, commit := range order {
		if tree, err = revertOne(ctx, repo, tip, tree, commit); err != nil {
			return "", err
		}
	}
	if tree == before {
		return "", muster.Errorf(muster.Invalid, "nothing of it is on the target any more: it was taken back already")
	}
	return repo.CommitTree(ctx, tree, []string{tip}, message)
}

// latestFirst sorts commits by where they stand in the history of tip.
func latestFirst(ctx context.Context, repo *git.Repo, tip string, commits []string) ([]string, error) {
	order := slices.Clone(commits)
	var failed error
	isIn := func(a, b string) bool {
		is, err := repo.IsAncestor(ctx, a, b)
		if err != nil && failed == nil {
			failed = err
		}
		return is
	}
	for _, c := range order {
		if !isIn(c, tip) && failed == nil {
			return nil, muster.Errorf(muster.NotFound, "%.7s is not on the target any more", c)
		}
	}
	slices.SortFunc(order, func(a, b string) int {
		if a != b && isIn(a, b) {
			return 1
		}
		return -1
	})
	return order, failed
}

// revertOne takes one commit back from a tree of the target's. It is the merge of that tree with the commit's parent,
// with the commit's own tree as their base: merge-tree finds a base by the history only, so each tree gets a commit.
func revertOne(ctx context.Context, repo *git.Repo, tip, tree, commit string) (string, error) {
	base, err := repo.Tree(ctx, commit)
	if err != nil {
		return "", err
	}
	parent, err := repo.Tree(ctx, commit+"^1")
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "%.7s is the first commit, which cannot be taken back", commit)
	}
	// The three commits are in no history but their own: no ref ever names them, and git's own cleaning removes them.
	var made [3]string
	for i, t := range [3]string{base, tree, parent} {
		var parents []string
		if i > 0 {
			parents = []string{made[0]}
		}
		if made[i], err = repo.CommitTree(ctx, t, parents, "for a revert"); err != nil {
			return "", err
		}
	}
	merged, conflicts, err := repo.MergeTree(ctx, made[1], made[2])
	if err == nil && len(conflicts) > 0 {
		later, _ := changedSince(ctx, repo, commit, tip, conflicts) // only words of the message
		err = &RevertConflict{Commit: commit, Files: conflicts, Later: later}
	}
	return merged, err
}

// changedSince returns the commits of the target after one of them that have changed some of the files.
func changedSince(ctx context.Context, repo *git.Repo, commit, tip string, files []string) ([]string, error) {
	args := []string{"--literal-pathspecs", "rev-list", "--first-parent", commit + ".." + tip, "--"}
	out, err := repo.Run(ctx, repo.CommonDir(), append(args, files...)...)
	return strings.Fields(out), err
}
