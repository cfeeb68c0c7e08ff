package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/worktree"
)

// Lost returns the lanes that git still has and the team's state does not, sorted: branches wt/NAME that muster has
// made, with or without their directories. They are left when the state is removed, as by git clean -fdx.
func (w *Workspace) Lost(ctx context.Context) (lost []muster.Name, err error) {
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	branches, err := repo.Refs(ctx, worktree.BranchPrefix)
	if err != nil || len(branches) == 0 {
		return nil, err
	}
	var known []muster.Lane
	if w.HasLanes() {
		lanes, err := w.Lanes(ctx)
		if err != nil {
			return nil, err
		}
		if known, err = lanes.List(ctx); err != nil {
			return nil, err
		}
	}
	for ref := range branches {
		name := muster.Name(strings.TrimPrefix(ref, worktree.BranchPrefix))
		isKnown := slices.ContainsFunc(known, func(l muster.Lane) bool { return l.Name == name })
		if !isKnown && muster.CheckName(name) == nil && git.MadeAt(repo, ref) != "" {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return lost, nil
}

// adoptLost makes lanes again of those whose directories are there. Of the others it keeps the commits, as those of
// lanes that were given up.
func (w *Workspace) adoptLost(ctx context.Context) error {
	repo, err := w.Repo(ctx)
	if err != nil {
		return err
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return err
	}
	if err := lanes.Recover(ctx); err != nil {
		return err
	}
	lost, err := w.Lost(ctx)
	if err != nil {
		return err
	}
	for _, name := range lost {
		ref := worktree.BranchPrefix + string(name)
		if at, err := repo.CheckedOut(ctx, ref); err != nil || at != "" { // by the user, elsewhere
			continue
		}
		tip, err := repo.Ref(ctx, ref)
		if err != nil {
			return err
		}
		if _, err := worktree.ArchiveRef(ctx, repo, string(name), tip); err != nil {
			return err
		}
		if err := repo.UndoWorktree(ctx, filepath.Join(worktree.Home(lanes), string(name))); err != nil {
			return err
		}
		err = repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: tip}})
		if err != nil && !errors.Is(err, muster.ErrStale) { // the branch has moved meanwhile
			return err
		}
	}
	return nil
}
