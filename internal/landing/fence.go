package landing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/worktree"
)

// landingRef is at a lane's head while it lands. The transaction that moves the target deletes it, so nobody lands
// without it.
func landingRef(id muster.TaskID, fence int) string {
	return fmt.Sprintf("refs/muster/landing/%d-%d", id, fence)
}

// revokedRef says that this claim lands no more: its landing ref cannot be made again.
func revokedRef(id muster.TaskID, fence int) string {
	return fmt.Sprintf("refs/muster/revoked/%d-%d", id, fence)
}

// enter makes the head durable, sets the landing ref at it and notes the attempt on the board.
func (l *Lander) enter(ctx context.Context, a *attempt) error {
	tip, err := l.Target(ctx)
	if err != nil {
		return err
	}
	if err := l.repo.Pack(ctx, []string{a.head}, []string{tip}); err != nil {
		return err
	}
	failpoint.Hit("landing.packed")
	ref, revoked := landingRef(a.task.ID, a.fence), revokedRef(a.task.ID, a.fence)
	for {
		now, err := l.repo.Refs(ctx, ref, revoked)
		if err != nil {
			return err
		}
		if now[revoked] != "" {
			return l.late(ctx, a.task, a.fence)
		}
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: a.head, Old: now[ref]}, {Ref: revoked}})
		if err == nil {
			break
		}
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
	failpoint.Hit("landing.claimed")
	// A landing that is under way keeps the tip it was first noted with: whatever has landed since then is found from there.
	onto := tip
	if was := a.task.Landing; a.task.Status == muster.Landing && was != nil && was.Onto != "" {
		onto = was.Onto
		if was.Head == a.head {
			return nil
		}
	}
	t, err := l.board.BeginLanding(ctx, a.task.ID, a.fence, muster.LandingAttempt{Head: a.head, Onto: onto, Summary: a.summary})
	failpoint.Hit("landing.noted")
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return l.late(ctx, a.task, a.fence)
	}
	if t.ID != 0 {
		a.task = t
	}
	return err
}

// stillOurs asks the board for the last time before the target moves. Who takes the claim back deletes the landing ref
// first, which the transaction sees; other programs only write the task.
func (l *Lander) stillOurs(ctx context.Context, a *attempt) error {
	t, err := l.board.Get(ctx, a.task.ID)
	if errors.Is(err, muster.ErrNotFound) {
		return l.late(ctx, a.task, a.fence)
	}
	if err == nil && (t.Fence != a.fence || t.Status != muster.Landing) {
		return l.late(ctx, t, a.fence)
	}
	return err
}

// withdraw lifts the landing ref, and says Fenced when the claim was revoked.
func (l *Lander) withdraw(ctx context.Context, a *attempt) error {
	if err := l.lift(ctx, a); err != nil {
		return err
	}
	revoked, err := l.repo.Ref(ctx, revokedRef(a.task.ID, a.fence))
	if err == nil && revoked != "" {
		err = l.late(ctx, a.task, a.fence)
	}
	return err
}

// lift removes the landing ref if it is there.
func (l *Lander) lift(ctx context.Context, a *attempt) error {
	ref := landingRef(a.task.ID, a.fence)
	for {
		at, err := l.repo.Ref(ctx, ref)
		if err != nil || at == "" {
			return err
		}
		if err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: at}}); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// Revoke ends a claim's right to land; call it before the board revokes the claim. When the work is on the target
// already, the task is completed and the error is Held.
func (l *Lander) Revoke(ctx context.Context, id muster.TaskID, fence int) error {
	ref, revoked := landingRef(id, fence), revokedRef(id, fence)
	head, err := l.repo.Head(ctx)
	if err != nil {
		return err
	}
	for {
		now, err := l.repo.Refs(ctx, ref, revoked)
		if err != nil {
			return err
		}
		var updates []git.RefUpdate
		if now[revoked] == "" {
			updates = append(updates, git.RefUpdate{Ref: revoked, New: head}) // what it points to means nothing
		}
		if now[ref] != "" {
			updates = append(updates, git.RefUpdate{Ref: ref, Old: now[ref]})
		}
		if len(updates) == 0 {
			break
		}
		err = l.repo.UpdateRefs(ctx, updates)
		if err == nil {
			break
		}
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
	failpoint.Hit("landing.revoked")
	t, err := l.board.Get(ctx, id)
	if errors.Is(err, muster.ErrNotFound) {
		return nil // deleted: there is nothing to complete
	}
	if err != nil || t.Fence != fence || t.Status != muster.Landing || t.Landing == nil {
		return err
	}
	landed, err := l.find(ctx, t)
	if err != nil || landed == nil {
		return err
	}
	late, cancel := grace(ctx)
	defer cancel()
	if _, err := l.board.Complete(late, id, fence, board.Outcome{Landed: landed, Result: t.Landing.Summary, By: t.Owner}); err != nil {
		return err
	}
	return muster.Errorf(muster.Held, "task %d has just landed as %.7s", id, landed.Commit)
}

// late refuses an owner whose claim is over and keeps what it did aside.
func (l *Lander) late(ctx context.Context, t muster.Task, fence int) error {
	refs, err := l.keepAside(ctx, t, fence)
	why := "the claim was taken back"
	_, there := l.board.Get(ctx, t.ID)
	switch {
	case errors.Is(there, muster.ErrNotFound):
		why = "it was deleted"
	case t.Fence == fence && t.Status == muster.Pending:
		why = "it was given back to the board"
	case t.Status == muster.NeedsAttention:
		why = "it needs attention now"
	case t.Status == muster.Completed:
		why = "it is completed"
	case t.Fence != fence && t.Owner != "":
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

// keepAside archives what a late owner was about to land, and what lies in the task's lanes that are not its present
// one; if there is only that one, it too.
func (l *Lander) keepAside(ctx context.Context, t muster.Task, fence int) (refs []string, err error) {
	ref := landingRef(t.ID, fence)
	head, err := l.repo.Ref(ctx, ref)
	if err != nil {
		return nil, err
	}
	if head != "" {
		kept, err := worktree.ArchiveRef(ctx, l.repo, fmt.Sprintf("task-%d", t.ID), head)
		if err != nil {
			return nil, err
		}
		refs = append(refs, kept)
		if err := l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: head}}); err != nil && !errors.Is(err, muster.ErrStale) {
			return refs, err
		}
	}
	all, err := l.lanes.List(ctx)
	if err != nil {
		return refs, err
	}
	var mine []muster.Name
	for _, lane := range all {
		if lane.TaskID == t.ID && lane.Name != t.Worktree {
			mine = append(mine, lane.Name)
		}
	}
	if len(mine) == 0 && t.Worktree != "" {
		mine = append(mine, t.Worktree)
	}
	for _, name := range mine {
		kept, err := l.lanes.Preserve(ctx, name)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return refs, err
		}
		if kept != "" {
			refs = append(refs, kept)
		}
	}
	failpoint.Hit("landing.kept")
	return refs, nil
}
