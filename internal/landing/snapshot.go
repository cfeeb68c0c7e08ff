package landing

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/git"
)

// Snapshot makes a commit on HEAD of a tree with what the user has not committed. It moves no ref. It is refused, as
// Invalid, where a landing of the same would be: with what looks like a secret that the user has not allowed.
func (l *Lander) Snapshot(ctx context.Context, head, tree string) (commit string, err error) {
	if !l.options.LandSecrets {
		changed, err := treeChanges(ctx, l.repo, head, tree)
		if err != nil {
			return "", err
		}
		changes, err := readChanges(ctx, l.repo, changed)
		if err != nil {
			return "", err
		}
		held, err := l.options.heldSecrets(changes)
		if err != nil {
			return "", err
		}
		if len(held) > 0 {
			more := ""
			if len(held) > 1 {
				more = fmt.Sprintf(" and %d more", len(held)-1)
			}
			return "", muster.Errorf(muster.Invalid, "your uncommitted changes hold what looks like a secret, so no "+
				"snapshot is made: %s%s", placeOf(held[0]), more).
				WithHint("take it out, or where it is none:  muster allow secret %s\n"+
					"or begin from HEAD:  --without-changes", held[0].Fingerprint)
		}
	}
	if commit, err = l.repo.CommitTree(ctx, tree, []string{head}, snapshotMessage); err != nil {
		return "", err
	}
	return commit, l.repo.Pack(ctx, head, commit)
}

// BeginAt moves the target from head, where PrepareTarget has left it, to a snapshot.
func BeginAt(ctx context.Context, repo *git.Repo, ref, head, snapshot string) error {
	err := repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: snapshot, Old: head}})
	if errors.Is(err, muster.ErrStale) {
		return muster.Errorf(muster.Held, "%s has just been moved by somebody else: start again", ref)
	}
	return err
}
