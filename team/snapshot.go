package team

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/text"
)

// A run may begin at a snapshot of what the user has not committed: a commit on HEAD, on the team's own branch. The
// checkout is read and not changed. Target.Merge takes the snapshot to the user's branch with the work.
//
// The order of the steps makes a kill harmless: the commit is made before the branch is prepared, and the branch moves
// to it before the record of the run names it as the base. A branch that has only a snapshot counts as one without
// work, so the next run begins anew.

// Changes says where a run begins whose user has uncommitted changes.
type Changes int

// Where a run begins.
const (
	ChangesUndecided Changes = iota // at HEAD, and a note says how to begin otherwise
	WithoutChanges                  // at HEAD
	WithChanges                     // at a snapshot of the changes, a commit on the team's own branch
)

// whyNot returns what the user reads of a refusal. Any other error stays.
func whyNot(err error) (string, error) {
	if refusal, ok := errors.AsType[*muster.Error](err); ok {
		return text.OneLine(refusal.Message), nil
	}
	return "", err // which may be nil
}

// hasWork reports whether a run would begin on the target, and not at HEAD.
func hasWork(ctx context.Context, repo *git.Repo, target string, fresh bool) (bool, error) {
	head, err := repo.Head(ctx)
	if err != nil {
		return false, err
	}
	tip, err := landing.PlannedTip(ctx, repo, target, false, fresh)
	return tip != head, err
}

// checkSnapshot refuses a snapshot that cannot be made, or at which no run can begin. It writes nothing.
func checkSnapshot(ctx context.Context, at *site, fresh bool) error {
	r, isGit := at.repository.(gitRepository)
	if !isGit {
		return nil
	}
	isAhead, err := hasWork(ctx, r.Repo, at.target(), fresh)
	if err != nil {
		return err
	}
	if isAhead {
		return muster.Errorf(muster.Held, "%s has work that HEAD lacks, so the team cannot begin at a snapshot",
			at.branch).WithHint("take it:              muster merge\nleave it behind:      --fresh\n" +
			"begin on top of it:   --without-changes")
	}
	return delivery.MaySnapshot(ctx, r.Repo)
}

// snapshot is the snapshot at which a run begins.
type snapshot struct {
	site         *site
	how          Changes
	head, commit string // commit is "" where there is none
}

// takeSnapshot makes the commit if the user wants one and has something uncommitted. No ref names it yet.
func (r *teamRun) takeSnapshot(ctx context.Context, how Changes, fresh bool) (s snapshot, err error) {
	s = snapshot{site: r.site, how: how}
	repo, isGit := r.site.repository.(gitRepository)
	if how != WithChanges || !isGit {
		return s, nil
	}
	if err := checkSnapshot(ctx, r.site, fresh); err != nil {
		return s, err
	}
	if s.head, err = repo.Head(ctx); err != nil {
		return s, err
	}
	tree, err := delivery.Snapshot(ctx, repo.Repo)
	if err != nil {
		return s, err
	}
	if was, err := repo.Tree(ctx, s.head); err != nil || was == tree {
		return s, err
	}
	lander, err := r.site.workspace.Lander(ctx)
	if err == nil {
		s.commit, err = lander.Snapshot(ctx, s.head, tree)
	}
	return s, err
}

// begin moves the target, which is at HEAD, to the snapshot.
func (s snapshot) begin(ctx context.Context) error {
	repo, isGit := s.site.repository.(gitRepository)
	if s.commit == "" || !isGit {
		return nil
	}
	return landing.BeginAt(ctx, repo.Repo, s.site.target(), s.head, s.commit)
}

// notes says to the user what becomes of their uncommitted changes.
func (s snapshot) notes(ctx context.Context, c git.CheckoutState) []string {
	repo, isGit := s.site.repository.(gitRepository)
	switch {
	case s.commit != "":
		to := "your branch"
		if c.Branch != "" {
			to = c.Branch
		}
		return []string{fmt.Sprintf("the team begins at a snapshot of your uncommitted changes, %.7s on %s; muster "+
			"merge makes it a commit of %s", s.commit, s.site.branch, to)}
	case s.how == WithChanges && c.Changed == 0:
		return []string{"your checkout has no uncommitted changes, so there is no snapshot of them"}
	case c.Changed == 0:
		return nil
	}
	if isGit {
		if commit, isSame := repo.snapshotIn(ctx, c.Head, s.site.target()); isSame {
			return []string{fmt.Sprintf("lanes have your uncommitted changes: the snapshot %.7s on %s", commit,
				s.site.branch)}
		} else if commit != "" {
			return []string{fmt.Sprintf("lanes have your uncommitted changes as they were in the snapshot %.7s on %s: "+
				"later ones are part of no lane", commit, s.site.branch)}
		}
	}
	note := "your uncommitted changes are part of no lane: lanes start from commits"
	if s.how != ChangesUndecided || !isGit || s.site.config.Land != "" || s.site.into != "" {
		return []string{note}
	}
	if hasWork, err := hasWork(ctx, repo.Repo, s.site.target(), false); err != nil || hasWork {
		return []string{note}
	}
	switch why, err := whyNot(delivery.MaySnapshot(ctx, repo.Repo)); {
	case err != nil:
		return []string{note}
	case why != "":
		return []string{note + "; " + why}
	}
	return []string{note + " (--with-changes begins at a snapshot of them)"}
}
