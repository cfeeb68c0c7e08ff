package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/git"
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
