package landing

import (
	"context"
	"fmt"
	"strings"

	"muster/internal/check"
)

// merged is the tree of a head that was merged with a commit and did not conflict.
type merged struct{ onto, head, tree string }

// mergeHead is MergeTree of a commit and the attempt's head. The merge with the tip, which was made before the attempt
// queued, is not made once more.
func mergeHead(ctx context.Context, a *attempt, onto string) (tree string, conflicts []string, err error) {
	if m := a.merged; m.onto == onto && m.head == a.head {
		return m.tree, nil, nil
	}
	return a.repo.MergeTree(ctx, onto, a.head)
}

// leftAt returns the commit at which the lane left the target.
func leftAt(ctx context.Context, a *attempt, tip string) (string, error) {
	base, err := a.repo.Run(ctx, a.repo.CommonDir(), "merge-base", tip, a.head)
	if err != nil {
		return "", unavailable(ctx, "git cannot tell where the lane left the target", err)
	}
	return strings.TrimSpace(base), nil
}

// checkOf returns the check of a commit for the task.
func (a *attempt) checkOf(commit string) check.Job {
	return check.Job{Commit: commit, Name: fmt.Sprintf("task-%d-%d", a.v.Task.ID, a.claim), Task: a.v.Task.ID}
}
