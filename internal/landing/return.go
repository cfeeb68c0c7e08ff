package landing

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
)

// mergeInLane merges the target into the lane after the merge of the trees has conflicted. A merge in a worktree obeys
// attributes that a merge of trees does not: where it needs nobody, the landing goes on. Else the task is returned.
func (l *Lander) mergeInLane(ctx context.Context, a *attempt, tip string) (v Verdict, done bool, err error) {
	files, err := l.lanes.Merge(ctx, a.task.Worktree, tip)
	if err != nil {
		return Verdict{Task: a.task}, true, err
	}
	if len(files) > 0 {
		v, err := l.returnConflict(ctx, a, files)
		return v, true, err
	}
	if a.head, _, err = l.lanes.Commit(ctx, a.task.Worktree, mergeMessage(l.branch())); err != nil {
		return Verdict{Task: a.task}, true, err
	}
	return Verdict{Task: a.task}, false, l.begin(ctx, a)
}

// explainUnmergeable finds out why git could not merge at all. A task whose history has no commit in common with the
// target is returned: somebody has moved the lane's branch, or the target.
func (l *Lander) explainUnmergeable(
	ctx context.Context, a *attempt, tip string, cause error,
) (v Verdict, done bool, err error) {
	v = Verdict{Task: a.task}
	related, err := l.repo.Related(ctx, tip, a.head)
	if err != nil || related {
		return v, true, unavailable(ctx, "the work cannot be merged", cause)
	}
	text := targetMovedText(l.branch())
	if onBase, err := l.repo.IsAncestor(ctx, a.task.Base, a.head); err == nil && !onBase {
		text = laneMovedText(l.branch(), a.task.Base)
	}
	details := board.Details{Text: "everything: it has no common history with " + l.branch()}
	err = l.returnTask(ctx, a, &v, "conflict", text, details)
	return v, true, err
}

// returnConflict returns the task to its owner, whose lane holds the conflicts.
func (l *Lander) returnConflict(ctx context.Context, a *attempt, files []string) (Verdict, error) {
	v := Verdict{Conflict: files, Task: a.task}
	text := conflictText(l.branch(), files)
	err := l.returnTask(ctx, a, &v, "conflict", text, board.Details{Text: fileList(files)})
	return v, err
}

// returnRed returns the task to its owner with the log. What the target has beyond the lane is merged into the lane
// first: the check failed on both together, and the owner must be able to see it fail.
func (l *Lander) returnRed(ctx context.Context, a *attempt, tip string, res result) (Verdict, error) {
	v := Verdict{Red: true, Log: res.log, Seconds: res.seconds, Task: a.task}
	merged, err := l.updateLane(ctx, a, tip)
	if err != nil {
		return v, err
	}
	text := redText(l.branch(), res, merged)
	details := board.Details{Text: lastLines(res.tail, 20), Log: res.log, Seconds: res.seconds}
	err = l.returnTask(ctx, a, &v, "check", text, details)
	return v, err
}

// updateLane merges the target into the lane if the lane lacks something of it.
func (l *Lander) updateLane(ctx context.Context, a *attempt, tip string) (merged bool, err error) {
	isUpToDate, err := l.repo.IsAncestor(ctx, tip, a.head)
	if err != nil || isUpToDate {
		return false, err
	}
	files, err := l.lanes.Merge(ctx, a.task.Worktree, tip)
	if err != nil || len(files) > 0 {
		return err == nil, err // the owner resolves a conflict here, as at the next landing
	}
	_, _, err = l.lanes.Commit(ctx, a.task.Worktree, mergeMessage(l.branch()))
	return err == nil, err
}

// returnTask ends the landing and returns the task. The landing ref goes before the board is told: once the task is its
// owner's again, nothing of this attempt may land any more.
func (l *Lander) returnTask(
	ctx context.Context, a *attempt, v *Verdict, why, text string, d board.Details,
) error {
	if err := l.cancelLanding(ctx, a); err != nil {
		return err
	}
	failpoint.Hit("landing.withdrawn")
	late, cancel := detach(ctx)
	defer cancel()
	// The return is written even when ctx has just ended: the owner has conflicts or a merge in the lane by now and
	// must be told why.
	t, err := l.board.Return(late, a.task.ID, a.claim, why, d)
	failpoint.Hit("landing.returned")
	if errors.Is(err, muster.ErrFenced) {
		return l.refuse(ctx, a.task, a.claim)
	}
	if t.ID != 0 {
		v.Task = t
	}
	if v.Task.Status == muster.NeedsAttention {
		text = fmt.Sprintf("This was the last of %d times in a row: the task needs attention now and is no longer "+
			"yours; its lane is kept.\n", t.Returns) + text
	}
	v.Text = text
	return err
}

// cancelLanding deletes the landing ref. The error is Fenced when the claim was revoked.
func (l *Lander) cancelLanding(ctx context.Context, a *attempt) error {
	if err := a.fence.remove(ctx); err != nil {
		return err
	}
	isRevoked, err := a.fence.isRevoked(ctx)
	if err == nil && isRevoked {
		err = l.refuse(ctx, a.task, a.claim)
	}
	return err
}
