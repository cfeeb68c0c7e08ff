package landing

import (
	"cmp"
	"context"
	"errors"

	"muster"
	"muster/internal/clock"
	"muster/internal/failpoint"
)

// gates are asked in this order before the work queues, each time that it is merged with a tip of the target without a
// conflict (work.merged). Work of which one returns a reason comes back to its owner, and the others are not asked.
//
// To add a reason to return a landing: write a method that finds it, with the signature of holdsSecrets, in a file of
// its own; list it here; and write next to secretsHeld, in texts.go, what its owner and people are told. The first line
// of that stands alone for a task that is given up. Tasks of muster undo pass the gates too. A new name of a reason
// goes into the comment of journal.TaskReturned and into docs/landing.md; view.reasonNouns has what people call it
// where its name is no noun.
func (l *landing) gates() []func(ctx context.Context, tip string) (comeback, error) {
	return []func(context.Context, string) (comeback, error){l.holdsLocalFiles, l.holdsSecrets}
}

// mergeInLane merges the target into the lane after the merge of the trees has conflicted. A merge in a worktree obeys
// attributes that a merge of trees does not: where it needs nobody, the error is errMoved, and the landing goes on.
// Else the task is returned.
func (l *landing) mergeInLane(ctx context.Context, tip string) error {
	files, err := l.mergeTarget(ctx, tip)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return l.returnConflict(ctx, tip, files)
	}
	return cmp.Or(l.begin(ctx, tip), errMoved)
}

// mergeTarget merges the target's tip into the lane, and commits the merge unless files conflict.
func (l *landing) mergeTarget(ctx context.Context, tip string) (conflicts []string, err error) {
	conflicts, err = l.lanes.Merge(ctx, l.task.Worktree, tip)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	l.head, _, err = l.lanes.Commit(ctx, l.task.Worktree, "Merge "+l.options.branch()+" into the lane\n")
	return nil, err
}

// explainUnmergeable finds out why git could not merge at all. A task whose history has no commit in common with the
// target is returned: somebody has moved the lane's branch, or the target.
func (l *landing) explainUnmergeable(ctx context.Context, tip string, cause error) error {
	related, err := l.repo.Related(ctx, tip, l.head)
	if err != nil || related {
		return unavailable(ctx, "the work cannot be merged", cause)
	}
	// A lane that still contains its base was not moved, so it was the target.
	base := ""
	if onBase, err := l.repo.IsAncestor(ctx, l.task.Base, l.head); err == nil && !onBase {
		base = l.task.Base
	}
	return l.comeBack(ctx, unrelated(l.options.branch(), base))
}

func (l *landing) returnConflict(ctx context.Context, tip string, files []string) error {
	met, err := l.explain.met(ctx, l.head, tip, files)
	if err != nil {
		return err
	}
	return l.comeBackWithSides(ctx, tip, conflicting(l.options.branch(), files, met))
}

// returnRed returns the task to its owner with the log. What the target has beyond the lane is merged into the lane
// first: the check failed on both together, and the owner must be able to see it fail.
func (l *landing) returnRed(ctx context.Context, tip string, res CheckResult) error {
	isUpToDate, err := l.repo.IsAncestor(ctx, tip, l.head)
	if err != nil {
		return err
	}
	met := collision{}
	if !isUpToDate {
		if met, err = l.explain.met(ctx, l.head, tip, nil); err != nil {
			return err
		}
		// The owner resolves a conflict here, as at the next landing.
		if _, err := l.mergeTarget(ctx, tip); err != nil {
			return err
		}
	}
	back := red(l.options.branch(), res, met, !isUpToDate)
	if left := l.leftOutText(); left != "" {
		back.text += "\n\nThe merged tree has nothing of what builds leave; " + left + ". git add -f PATH lands one " +
			"of them."
	}
	// The first red check on a target that the lane did not have may be the fault of both sides.
	back.details.Moved = !isUpToDate && l.task.Rounds == 0
	return l.comeBackWithSides(ctx, tip, back)
}

// comeBackWithSides is comeBack for a reason that may be the fault of both sides: a task that is given up then has what
// each was for.
func (l *landing) comeBackWithSides(ctx context.Context, tip string, back comeback) (err error) {
	if back.details.Sides, err = l.explain.bothSides(ctx, &l.work, tip, back.details); err != nil {
		return err
	}
	return l.comeBack(ctx, back)
}

// comeBack ends the landing and returns the task. The landing ref goes before the board is told: once the task is its
// owner's again, nothing of this landing may land any more.
func (l *landing) comeBack(ctx context.Context, back comeback) error {
	if err := l.cancel(ctx); err != nil {
		return err
	}
	failpoint.Hit("landing.withdrawn")
	late, cancel := clock.Detach(ctx)
	defer cancel()
	// The return is written even when ctx has just ended: the owner has conflicts or a merge in the lane by now and
	// must be told why.
	t, err := l.board.Return(late, l.task.ID, l.claim, back.reason, back.details)
	failpoint.Hit("landing.returned")
	if errors.Is(err, muster.ErrFenced) {
		return l.refuse(ctx)
	}
	l.setTask(t)
	l.text = back.text
	if l.task.Status == muster.NeedsAttention {
		l.text = stuckText(t, back.text)
	}
	return err
}

// cancel deletes the landing ref. The error is Fenced when the claim was revoked.
func (l *landing) cancel(ctx context.Context) error {
	isRevoked, err := l.refs.remove(ctx)
	if err == nil && isRevoked {
		return l.refuse(ctx)
	}
	return err
}
