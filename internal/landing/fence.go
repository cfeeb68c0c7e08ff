package landing

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/git"
)

// fence is the pair of refs that decides whether a claim may land. The landing ref is at the lane's head while it
// lands; the transaction that moves the target deletes it, so nobody lands without it. The revoked ref says that the
// claim lands no more; the landing ref cannot be made beside it.
type fence struct {
	repo    *git.Repo
	landing string
	revoked string
}

// fenceOf returns the fence of a claim. A task that is claimed again has another one.
func fenceOf(repo *git.Repo, id muster.TaskID, claim int) fence {
	return fence{repo: repo, landing: fmt.Sprintf("refs/muster/landing/%d-%d", id, claim),
		revoked: fmt.Sprintf("%s%d-%d", revokedRefs, id, claim)}
}

// revokedRefs is where the revoked refs lie.
const revokedRefs = "refs/muster/revoked/"

// head returns what the landing ref is at, "" when there is none.
func (f fence) head(ctx context.Context) (string, error) { return f.repo.Ref(ctx, f.landing) }

// isRevoked reports whether the claim was revoked.
func (f fence) isRevoked(ctx context.Context) (bool, error) {
	at, err := f.repo.Ref(ctx, f.revoked)
	return at != "", err
}

// raise sets the landing ref to the head, unless the claim was revoked. Both refs are compared in one transaction, so a
// revocation comes before it or after it and is never missed.
func (f fence) raise(ctx context.Context, head string) (isRevoked bool, err error) {
	for {
		now, err := f.repo.Refs(ctx, f.landing, f.revoked)
		if err != nil || now[f.revoked] != "" {
			return err == nil, err
		}
		err = f.repo.UpdateRefs(ctx,
			[]git.RefUpdate{{Ref: f.landing, New: head, Old: now[f.landing]}, {Ref: f.revoked}})
		if !errors.Is(err, muster.ErrStale) {
			return false, err
		}
	}
}

// remove deletes the landing ref if it is there.
func (f fence) remove(ctx context.Context) error {
	for {
		at, err := f.head(ctx)
		if err != nil || at == "" {
			return err
		}
		err = f.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: f.landing, Old: at}})
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// revoke makes the revoked ref and deletes the landing ref, in one transaction.
func (f fence) revoke(ctx context.Context) error {
	head, err := f.repo.Head(ctx)
	if err != nil {
		return err
	}
	for {
		now, err := f.repo.Refs(ctx, f.landing, f.revoked)
		if err != nil {
			return err
		}
		var updates []git.RefUpdate
		if now[f.revoked] == "" {
			updates = append(updates, git.RefUpdate{Ref: f.revoked, New: head}) // any commit does
		}
		if now[f.landing] != "" {
			updates = append(updates, git.RefUpdate{Ref: f.landing, Old: now[f.landing]})
		}
		if len(updates) == 0 {
			return nil
		}
		if err = f.repo.UpdateRefs(ctx, updates); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}
