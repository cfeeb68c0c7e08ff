package landing

import (
	"cmp"
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

// landingRefs is the pair of refs that decides whether a claim may land. The landing ref is at the lane's head while it
// lands; the transaction that moves the target deletes it, so nobody lands without it. The revoked ref says that the
// claim lands no more; the landing ref cannot be made beside it.
type landingRefs struct {
	repo    *git.Repo
	landing string
	revoked string
}

// refsOf returns the refs of a claim. A task that is claimed again has others, so a revocation never concerns a
// later owner.
func refsOf(repo *git.Repo, id muster.TaskID, claim int) landingRefs {
	return landingRefs{repo: repo, landing: fmt.Sprintf("refs/muster/landing/%d-%d", id, claim),
		revoked: fmt.Sprintf("%s%d-%d", revokedRefs, id, claim)}
}

// revokedRefs is where the revoked refs lie.
const revokedRefs = "refs/muster/revoked/"

// change moves the refs as plan says, which is given what they are at. Both are compared in one transaction: when one
// has moved since it was read, plan is asked again. A plan without updates ends the change.
func (r landingRefs) change(ctx context.Context, plan func(landing, revoked string) []git.RefUpdate) error {
	// Two reads are no moment, and need none: the transaction compares both.
	landing, err := r.repo.Ref(ctx, r.landing)
	revoked, revokedErr := r.repo.Ref(ctx, r.revoked)
	if err := cmp.Or(err, revokedErr); err != nil {
		return err
	}
	for {
		err = r.repo.UpdateRefs(ctx, plan(landing, revoked))
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
		now, err := r.repo.Refs(ctx, r.landing, r.revoked)
		if err != nil {
			return err
		}
		landing, revoked = now[r.landing], now[r.revoked]
	}
}

// raise sets the landing ref to the head, unless the claim was revoked. A revocation comes before it or after it and is
// never missed, because the transaction verifies that the revoked ref is missing.
func (r landingRefs) raise(ctx context.Context, head string) (isRevoked bool, err error) {
	err = r.change(ctx, func(landing, revoked string) []git.RefUpdate {
		if isRevoked = revoked != ""; isRevoked {
			return nil
		}
		return []git.RefUpdate{{Ref: r.landing, New: head, Old: landing}, {Ref: r.revoked}}
	})
	return isRevoked, err
}

// remove deletes the landing ref if it is there. It reports whether the claim was revoked.
func (r landingRefs) remove(ctx context.Context) (isRevoked bool, err error) {
	err = r.change(ctx, func(landing, revoked string) []git.RefUpdate {
		if isRevoked = revoked != ""; landing == "" {
			return nil
		}
		return []git.RefUpdate{{Ref: r.landing, Old: landing}}
	})
	return isRevoked, err
}

// revoke makes the revoked ref and deletes the landing ref, in one transaction. A landing ref that comes meanwhile is
// never missed: where there was none, the transaction verifies that.
func (r landingRefs) revoke(ctx context.Context) error {
	head, err := r.repo.Head(ctx)
	if err != nil {
		return err
	}
	return r.change(ctx, func(landing, revoked string) (updates []git.RefUpdate) {
		if revoked == "" {
			updates = append(updates, git.RefUpdate{Ref: r.revoked, New: head}) // any commit does
		}
		return append(updates, git.RefUpdate{Ref: r.landing, Old: landing})
	})
}

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
	landed, err := l.findLanded(ctx, t)
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

// ForgetRevoked removes the revoked refs of claims that the board's tasks cannot have had: of an id that no task has,
// or of a later claim than the task's. Such refs stay when somebody removes the board's files, and a new task with the
// old id could never land. No landing depends on them, because it asks the board too.
func ForgetRevoked(ctx context.Context, repo *git.Repo, tasks []muster.Task) error {
	refs, err := repo.Refs(ctx, revokedRefs)
	if err != nil {
		return err
	}
	// A task that the board does not have counts as never claimed: its number is 0.
	claims := map[muster.TaskID]int{}
	for _, t := range tasks {
		claims[t.ID] = t.Fence
	}
	var updates []git.RefUpdate
	for ref, at := range refs {
		var id muster.TaskID
		var claim int
		if _, err := fmt.Sscanf(ref, revokedRefs+"%d-%d", &id, &claim); err == nil && claim > claims[id] {
			updates = append(updates, git.RefUpdate{Ref: ref, Old: at})
		}
	}
	// Stale: another process is doing the same. The next run looks again.
	if err = repo.UpdateRefs(ctx, updates); errors.Is(err, muster.ErrStale) {
		return nil
	}
	return err
}

// refuse returns the Fenced error for an owner whose claim is over, after saving what the owner did.
func (a *attempt) refuse(ctx context.Context) error {
	// The work is saved before anything is said: an owner who reads the error may go on to another task at once.
	refs, err := a.saveWork(ctx)
	t, why := a.v.Task, "the claim was taken back"
	// A deleted task is told apart from one that was taken back. Another error leaves the general words.
	_, getErr := a.board.Get(ctx, t.ID)
	switch {
	case errors.Is(getErr, muster.ErrNotFound):
		why = "it was deleted"
	case t.Fence == a.claim && t.Status == muster.Pending:
		why = "it was given back to the board"
	case t.Status == muster.NeedsAttention:
		why = "it needs attention now"
	case t.Status == muster.Completed:
		why = "it is completed"
	case t.Fence != a.claim && t.Owner != "":
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
func (a *attempt) saveWork(ctx context.Context) (refs []string, err error) {
	t := a.v.Task
	head, err := a.repo.Ref(ctx, a.refs.landing)
	if err != nil {
		return nil, err
	}
	if head != "" {
		ref, err := worktree.ArchiveRef(ctx, a.repo, fmt.Sprintf("task-%d", t.ID), head)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
		err = a.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: a.refs.landing, Old: head}})
		if err != nil && !errors.Is(err, muster.ErrStale) {
			return refs, err
		}
	}
	lanes, err := a.lanes.List(ctx)
	if err != nil {
		return refs, err
	}
	lanes = slices.DeleteFunc(lanes, func(l muster.Lane) bool { return l.TaskID != t.ID || l.Name == t.Worktree })
	if len(lanes) == 0 && t.Worktree != "" {
		lanes = []muster.Lane{{Name: t.Worktree}}
	}
	// Preserve copies and removes nothing: a lane may be another member's workplace by now.
	for _, lane := range lanes {
		ref, err := a.lanes.Preserve(ctx, lane.Name)
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
