package landing

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
)

// work is the document of a landing: what is to land, and for which claim. Its steps fill it in; the queue reads it.
type work struct {
	task    muster.Task // as it was read last
	claim   int         // the claim's number: the task's Fence when it was claimed
	refs    landingRefs
	by      muster.Name
	summary string
	head    string // the commit that is to land
	merged  merged
	log     *slog.Logger

	needsReview bool
	approval    string // who has approved the work as it is; "": nobody has
}

// isReviewed reports whether nothing more has to be asked about the work.
func (w *work) isReviewed() bool { return !w.needsReview || w.approval != "" }

// setTask notes the task as the board has just returned it. A failed call of the board returns none.
func (w *work) setTask(t muster.Task) {
	if t.ID != 0 {
		w.task = t
	}
}

// checkOf returns the check of a commit for the task.
func (w *work) checkOf(commit string) check.Job {
	return check.Job{Commit: commit, Name: fmt.Sprintf("task-%d-%d", w.task.ID, w.claim), Task: w.task.ID}
}

// merged is the tree of a head that was merged with a commit and did not conflict.
type merged struct{ onto, head, tree string }

// mergeOnto is MergeTree of a commit and the head. The merge that was made last without a conflict is not made once
// more.
func (w *work) mergeOnto(ctx context.Context, repo *git.Repo, onto string) (tree string, conflicts []string, err error) {
	if m := w.merged; m.onto == onto && m.head == w.head {
		return m.tree, nil, nil
	}
	return repo.MergeTree(ctx, onto, w.head)
}

// leftAt returns the commit at which the lane left the target.
func (w *work) leftAt(ctx context.Context, repo *git.Repo, tip string) (string, error) {
	base, err := repo.Run(ctx, repo.CommonDir(), "merge-base", tip, w.head)
	if err != nil {
		return "", unavailable(ctx, "git cannot tell where the lane left the target", err)
	}
	return strings.TrimSpace(base), nil
}
