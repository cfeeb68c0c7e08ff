package landing

import (
	"cmp"
	"context"
	"errors"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
)

// mergeInLane merges the target into the lane after the merge of the trees has conflicted. A merge in a worktree obeys
// attributes that a merge of trees does not: where it needs nobody, the error is errMoved, and the landing goes on.
// Else the task is returned.
func (a *attempt) mergeInLane(ctx context.Context, tip string) error {
	files, err := a.mergeTarget(ctx, tip)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return a.returnConflict(ctx, tip, files)
	}
	return cmp.Or(a.begin(ctx, tip), errMoved)
}

// mergeTarget merges the target's tip into the lane, and commits the merge unless files conflict.
func (a *attempt) mergeTarget(ctx context.Context, tip string) (conflicts []string, err error) {
	conflicts, err = a.lanes.Merge(ctx, a.v.Task.Worktree, tip)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	a.head, _, err = a.lanes.Commit(ctx, a.v.Task.Worktree, "Merge "+a.branch()+" into the lane\n")
	return nil, err
}

// explainUnmergeable finds out why git could not merge at all. A task whose history has no commit in common with the
// target is returned: somebody has moved the lane's branch, or the target.
func (a *attempt) explainUnmergeable(ctx context.Context, tip string, cause error) error {
	related, err := a.repo.Related(ctx, tip, a.head)
	if err != nil || related {
		return unavailable(ctx, "the work cannot be merged", cause)
	}
	// A lane that still contains its base was not moved, so it was the target.
	text := targetMovedText(a.branch())
	if onBase, err := a.repo.IsAncestor(ctx, a.v.Task.Base, a.head); err == nil && !onBase {
		text = laneMovedText(a.branch(), a.v.Task.Base)
	}
	return a.returnTask(ctx, "conflict", text,
		board.Details{Text: "everything: it has no common history with " + a.branch()})
}

// returnConflict returns the task to its owner, whose lane holds the conflicts.
func (a *attempt) returnConflict(ctx context.Context, tip string, files []string) error {
	met, err := a.explain(ctx, a.head, tip, files)
	if err != nil {
		return err
	}
	d := board.Details{Text: fileList(files), With: met.with, Met: met.met, Moved: true}
	if d.Sides, err = a.bothSides(ctx, tip, d); err != nil {
		return err
	}
	return a.returnTask(ctx, "conflict", conflictText(a.branch(), files)+met.text, d)
}

// returnRed returns the task to its owner with the log. What the target has beyond the lane is merged into the lane
// first: the check failed on both together, and the owner must be able to see it fail.
func (a *attempt) returnRed(ctx context.Context, tip string, res CheckResult) error {
	isUpToDate, err := a.repo.IsAncestor(ctx, tip, a.head)
	if err != nil {
		return err
	}
	met := collision{}
	if !isUpToDate {
		if met, err = a.explain(ctx, a.head, tip, nil); err != nil {
			return err
		}
		// The owner resolves a conflict here, as at the next landing.
		if _, err := a.mergeTarget(ctx, tip); err != nil {
			return err
		}
	}
	d := board.Details{Text: lastLines(res.Output, 20), Failed: res.Failed, Log: res.Log, Seconds: res.Seconds,
		With: met.with, Met: met.met,
		// The first red check on a target that the lane did not have may be the fault of both sides.
		Moved: !isUpToDate && a.v.Task.Rounds == 0}
	if d.Sides, err = a.bothSides(ctx, tip, d); err != nil {
		return err
	}
	return a.returnTask(ctx, "check", redText(a.branch(), res, met.text, !isUpToDate), d)
}

// returnTask ends the landing and returns the task. The landing ref goes before the board is told: once the task is its
// owner's again, nothing of this attempt may land any more.
func (a *attempt) returnTask(ctx context.Context, why, text string, d board.Details) error {
	if err := a.cancel(ctx); err != nil {
		return err
	}
	failpoint.Hit("landing.withdrawn")
	late, cancel := clock.Detach(ctx)
	defer cancel()
	// The return is written even when ctx has just ended: the owner has conflicts or a merge in the lane by now and
	// must be told why.
	t, err := a.board.Return(late, a.v.Task.ID, a.claim, why, d)
	failpoint.Hit("landing.returned")
	if errors.Is(err, muster.ErrFenced) {
		return a.refuse(ctx)
	}
	a.setTask(t)
	if a.v.Task.Status == muster.NeedsAttention {
		text = stuckText(t, text)
	}
	a.v.Text = text
	return err
}

// cancel deletes the landing ref. The error is Fenced when the claim was revoked.
func (a *attempt) cancel(ctx context.Context) error {
	isRevoked, err := a.refs.remove(ctx)
	if err == nil && isRevoked {
		return a.refuse(ctx)
	}
	return err
}
