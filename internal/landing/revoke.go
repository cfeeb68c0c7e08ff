package landing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/worktree"
)

// Revoke ends a claim's right to land. Call it before the board revokes the claim. When the work is on the target
// already, it completes the task, and the error is Held.
func (l *Lander) Revoke(ctx context.Context, id muster.TaskID, claim int) error {
	// After this transaction the claim cannot land. What it has landed before is found below.
	if err := refsOf(l.repo, id, claim).revoke(ctx); err != nil {
		return err
	}
	failpoint.Hit("landing.revoked")
	t, err := l.board.Get(ctx, id)
	if errors.Is(err, muster.ErrNotFound) {
		return nil // the task is deleted, so there is nothing to complete
	}
	if err != nil || t.Fence != claim || t.Status != muster.Landing || t.Landing == nil {
		return err
	}
	tip, err := l.guard.tip(ctx)
	if err != nil {
		return err
	}
	landed, err := findLanded(ctx, l.repo, t, tip)
	if err != nil || landed == nil {
		return err
	}
	late, cancel := clock.Detach(ctx)
	defer cancel()
	outcome := board.Outcome{Landed: landed, Result: t.Landing.Summary, By: t.Owner}
	if _, err := l.board.Complete(late, id, claim, outcome); err != nil {
		return err
	}
	return muster.Errorf(muster.Held, "task %d has just landed as %.7s", id, landed.Commit)
}

// refuse returns the Fenced error for an owner whose claim is over, after saving what the owner did.
func (l *landing) refuse(ctx context.Context) error {
	// The work is saved before anything is said: an owner who reads the error may go on to another task at once.
	refs, err := l.saveWork(ctx)
	t, why := l.task, "the claim was taken back"
	// A deleted task is told apart from one that was taken back. Another error leaves the general words.
	_, getErr := l.board.Get(ctx, t.ID)
	switch {
	case errors.Is(getErr, muster.ErrNotFound):
		why = "it was deleted"
	case t.Fence == l.claim && t.Status == muster.Pending:
		why = "it was given back to the board"
	case t.Status == muster.NeedsAttention:
		why = "it needs attention now"
	case t.Status == muster.Completed:
		why = "it is completed"
	case t.Fence != l.claim && t.Owner != "":
		why = "it is " + string(t.Owner) + "'s now"
	}
	e := muster.Errorf(muster.Fenced, "task %d is no longer yours: %s", t.ID, why)
	switch {
	case err != nil:
		return e.WithHint("what you did is still in its lane; it could not be kept aside: %v", err)
	case len(refs) > 0:
		return e.WithHint("what you did is kept at %s", strings.Join(refs, ", "))
	}
	return e
}

// saveWork archives what a late owner was about to land, and what lies in the lanes that were the task's before its
// present one; if there is only that one, it too. The landing ref goes only after the commit has its archive ref.
func (l *landing) saveWork(ctx context.Context) (refs []string, err error) {
	t := l.task
	head, err := l.repo.Ref(ctx, l.refs.landing)
	if err != nil {
		return nil, err
	}
	if head != "" {
		ref, err := worktree.ArchiveRef(ctx, l.repo, fmt.Sprintf("task-%d", t.ID), head)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: l.refs.landing, Old: head}})
		if err != nil && !errors.Is(err, muster.ErrStale) {
			return refs, err
		}
	}
	lanes, err := l.lanes.List(ctx)
	if err != nil {
		return refs, err
	}
	lanes = slices.DeleteFunc(lanes, func(x muster.Lane) bool { return x.TaskID != t.ID || x.Name == t.Worktree })
	if len(lanes) == 0 && t.Worktree != "" {
		lanes = []muster.Lane{{Name: t.Worktree}}
	}
	// Preserve copies and removes nothing: a lane may be another member's workplace by now.
	for _, lane := range lanes {
		ref, err := l.lanes.Preserve(ctx, lane.Name)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return refs, err
		}
		if ref != "" {
			refs = append(refs, ref)
		}
	}
	failpoint.Hit("landing.kept")
	return refs, nil
}
