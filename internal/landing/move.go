package landing

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/git"
)

// land moves the target to the commit at a position and deletes the landing refs of all landings up to it, in one
// transaction. landed says what its check said. Where one of the claims is over, nothing moves, and the others queue
// again.
func (s *stack) land(ctx context.Context, at int, landed muster.Landed) error {
	failpoint.Hit("landing.checked")
	landing := s.entries[:at]
	if sendToReview(s, landing, landed) {
		return nil
	}
	if err := refuseUsers(ctx, s.Lander); err != nil {
		return err
	}
	if isOver, err := s.endOver(ctx, landing); isOver || err != nil {
		return err
	}
	if err := s.makeTop(ctx, at, &landed); err != nil {
		return err
	}
	failpoint.Hit("landing.made")
	isMoved, err := s.moveTarget(ctx, landing, landed.Commit)
	if err != nil || !isMoved {
		return err
	}
	s.settle(ctx, landing, landed)
	s.tip, s.entries = landed.Commit, s.entries[at:]
	if err := s.restack(ctx); err != nil {
		return err
	}
	if err := s.returnConflicting(ctx); err != nil {
		return err
	}
	if err := s.repo.Tidy(ctx); err != nil {
		s.options.Log.WarnContext(ctx, "git cannot repack", "err", err)
	}
	return nil
}

// restack puts what is left on the commit that has landed: that is another one than the one below, as its message says
// what its check said. The trees stay as they are, so what is known of them holds for the new commits.
//
// Without it the next commit that lands would not have the last one in its history, and what the board calls landed
// would no longer be on the target.
func (s *stack) restack(ctx context.Context) error {
	below := s.tip
	for i, e := range s.entries {
		commit, err := e.makeCommit(ctx, e.tree, below, s.expected())
		if err != nil {
			return err
		}
		s.entries[i].commit, below = commit, commit
	}
	return nil
}

// endOver asks the board for the last time before the target moves: other programs only write the task, and delete no
// landing ref. Where claims are over their owners are told why, and all others queue again.
func (s *stack) endOver(ctx context.Context, landing []entry) (isOver bool, err error) {
	for _, e := range landing {
		t, err := s.board.Get(ctx, e.v.Task.ID)
		if errors.Is(err, muster.ErrNotFound) || err == nil && (t.Fence != e.claim || t.Status != muster.Landing) {
			s.endClaim(e.attempt, func(ctx context.Context, a *attempt) error {
				a.setTask(t)
				return a.explainOver(ctx)
			})
			isOver = true
		} else if err != nil {
			return false, err
		}
	}
	if isOver {
		s.requeue()
	}
	return isOver, nil
}

// endClaim decides about an entry and takes it from the stack.
func (s *stack) endClaim(job *attempt, next func(context.Context, *attempt) error) {
	s.queue.decide(job, next)
	kept := s.entries[:0:0]
	for _, e := range s.entries {
		if e.attempt != job {
			kept = append(kept, e)
		}
	}
	s.entries = kept
}

// makeTop makes the commit that the target is to be at, and makes all that land durable: they are in a synced pack
// before any ref names them, or a power cut could leave the target at a commit that the disk does not have.
func (s *stack) makeTop(ctx context.Context, at int, landed *muster.Landed) (err error) {
	e := s.entries[at-1]
	landed.Commit = e.commit
	if landed.Receipt != s.expected().Receipt {
		below := s.tip
		if at > 1 {
			below = s.entries[at-2].commit
		}
		if landed.Commit, err = e.makeCommit(ctx, e.tree, below, *landed); err != nil {
			return err
		}
	}
	if landed.Commit, err = s.sign(ctx, at, *landed); err != nil {
		return err
	}
	return s.repo.Pack(ctx, s.tip, landed.Commit)
}

// makeCommit makes the commit that lands on another one. It is not durable yet.
func (a *attempt) makeCommit(ctx context.Context, tree, onto string, landed muster.Landed) (commit string, err error) {
	commit, err = a.commitBy(ctx, a.repo.CommitTree, tree, onto, landed)
	if err != nil {
		return "", unavailable(ctx, "the commit cannot be made", err)
	}
	return commit, nil
}

// commitBy makes the commit that lands on another one with a function: CommitTree or SignedCommit of the repository.
func (a *attempt) commitBy(
	ctx context.Context,
	commit func(ctx context.Context, tree string, parents []string, message string) (string, error),
	tree, onto string, landed muster.Landed,
) (string, error) {
	landed.Review = a.approval.String()
	// What it lands on is always the first parent: findLanded follows first parents only.
	parents := []string{onto}
	if a.options.MergeCommits {
		parents = append(parents, a.head)
	}
	return commit(ctx, tree, parents, message(a.v.Task, a.summary, a.by, landed))
}

// moveTarget is the landing: the target moves and the landing refs go, or neither. Where that was refused, it decides
// about those who are the reason, and the others queue again.
func (s *stack) moveTarget(ctx context.Context, landing []entry, commit string) (isMoved bool, err error) {
	// What has landed must stay on the target, whatever went wrong here before.
	if isOnTip, err := s.repo.IsAncestor(ctx, s.tip, commit); err != nil || !isOnTip {
		return false, cmp.Or(err, error(muster.Errorf(muster.Unavailable, "%.7s does not follow %.7s", commit, s.tip)))
	}
	err = s.announce(ctx, s.tip, commit)
	if err == nil {
		failpoint.Hit("landing.moving")
		// A target that moved, or a claim that was revoked after the board was asked, makes the transaction fail, so
		// neither an untested merge nor a late owner's work can land.
		updates := []git.RefUpdate{{Ref: s.options.Target, New: commit, Old: s.tip}}
		for _, e := range landing {
			updates = append(updates, git.RefUpdate{Ref: e.refs.landing, Old: e.head})
		}
		err = s.repo.UpdateRefs(ctx, updates)
	}
	switch {
	case err == nil:
		failpoint.Hit("landing.moved")
		landing[len(landing)-1].log.InfoContext(ctx, "landing moved the target",
			"commit", commit, "tasks", len(landing))
		return true, nil
	case errors.Is(err, muster.ErrStale) || errors.Is(err, errMoved):
		s.options.Log.InfoContext(ctx, "landing refused", "tip", s.tip)
		return false, s.endStale(ctx, landing)
	}
	return false, err
}

// endStale finds out which landing refs are no longer where their owners have set them. Their owners are told why; the
// others queue again, because it was the target that moved, or what they were merged with is gone.
func (s *stack) endStale(ctx context.Context, landing []entry) error {
	for _, e := range landing {
		at, err := s.repo.Ref(ctx, e.refs.landing)
		if err != nil {
			return err
		}
		if at != e.head {
			s.endClaim(e.attempt, func(ctx context.Context, a *attempt) error { return a.explainStale(ctx) })
		}
	}
	s.requeue()
	return nil
}

// settle records what has landed. The top is recorded before anything else is done: where the target may be is told by
// what the board calls landed. The owners of the others record theirs; resume finds what a crash has left.
func (s *stack) settle(ctx context.Context, landing []entry, top muster.Landed) {
	last := len(landing) - 1
	topID := landing[last].v.Task.ID
	for i, e := range landing {
		landed := top
		if i < last {
			landed = s.expected()
			landed.Commit = e.commit
			if landed.Receipt == muster.ReceiptCovered {
				landed.CoveredBy = topID
			}
		}
		job := e.attempt
		if i == last {
			err := job.complete(ctx, landed)
			s.queue.decide(job, func(context.Context, *attempt) error { return err })
			continue
		}
		isThere := s.queue.decide(job, func(ctx context.Context, a *attempt) error { return a.complete(ctx, landed) })
		if !isThere {
			if err := job.complete(ctx, landed); err != nil {
				s.options.Log.WarnContext(ctx, "a landing is not recorded", "task", job.v.Task.ID, "err", err)
			}
		}
	}
}

// sendToReview takes those out of the stack whose work is not reviewed yet, so that their owners have it reviewed, and
// lets the others wait again. It reports whether there were any. checked says what the check said of all of them.
//
// Invariant: whatever moves the target calls it first, so that no work lands that lacks its review.
func sendToReview(s *stack, landing []entry, checked muster.Landed) (isSent bool) {
	for _, e := range slices.Clone(landing) {
		if !e.isReviewed() {
			isSent = true
			s.endClaim(e.attempt, func(ctx context.Context, a *attempt) error { return a.review(ctx, checked) })
		}
	}
	if isSent {
		s.requeue()
	}
	return isSent
}
