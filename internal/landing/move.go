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
	if s.sendToReview(landing, landed) {
		return nil
	}
	if err := s.queue.target.refuseUsers(ctx); err != nil {
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
	if err := s.queue.repo.Tidy(ctx); err != nil {
		s.queue.options.Log.WarnContext(ctx, "git cannot repack", "err", err)
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
		commit, err := s.queue.makeCommit(ctx, e.job, e.tree, below, s.expected())
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
		t, err := s.queue.board.Get(ctx, e.job.task.ID)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return false, err
		}
		if err != nil || t.Fence != e.job.claim || t.Status != muster.Landing {
			s.decide(e.job, decision{do: doEndClaim, task: t})
			isOver = true
		}
	}
	if isOver {
		s.requeue()
	}
	return isOver, nil
}

// decide decides about a landing and takes it from the stack.
func (s *stack) decide(j *job, d decision) {
	s.queue.answer(j, d)
	kept := s.entries[:0:0]
	for _, e := range s.entries {
		if e.job != j {
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
		if landed.Commit, err = s.queue.makeCommit(ctx, e.job, e.tree, below, *landed); err != nil {
			return err
		}
	}
	if landed.Commit, err = s.sign(ctx, at, *landed); err != nil {
		return err
	}
	return s.queue.repo.Pack(ctx, s.tip, landed.Commit)
}

// makeCommit makes the commit that lands on another one. It is not durable yet.
func (q *queue) makeCommit(ctx context.Context, j *job, tree, onto string, landed muster.Landed) (string, error) {
	parents, message := q.commitOf(j, onto, landed)
	commit, err := q.repo.CommitTree(ctx, tree, parents, message)
	if err != nil {
		return "", unavailable(ctx, "the commit cannot be made", err)
	}
	return commit, nil
}

func (q *queue) commitOf(j *job, onto string, landed muster.Landed) (parents []string, text string) {
	landed.Review = j.approval
	// What it lands on is always the first parent: findLanded follows first parents only.
	parents = []string{onto}
	if q.options.MergeCommits {
		parents = append(parents, j.head)
	}
	return parents, message(j.words, j.task.ID, j.by, landed)
}

// moveTarget is the landing: the target moves and the landing refs go, or neither. Where that was refused, it decides
// about those who are the reason, and the others queue again.
func (s *stack) moveTarget(ctx context.Context, landing []entry, commit string) (isMoved bool, err error) {
	// What has landed must stay on the target, whatever went wrong here before.
	if isOnTip, err := s.queue.repo.IsAncestor(ctx, s.tip, commit); err != nil || !isOnTip {
		return false, cmp.Or(err, error(muster.Errorf(muster.Unavailable, "%.7s does not follow %.7s", commit, s.tip)))
	}
	err = s.queue.target.announce(ctx, s.tip, commit)
	if err == nil {
		failpoint.Hit("landing.moving")
		// A target that moved, or a claim that was revoked after the board was asked, makes the transaction fail, so
		// neither an untested merge nor a late owner's work can land.
		updates := []git.RefUpdate{{Ref: s.queue.options.Target, New: commit, Old: s.tip}}
		for _, e := range landing {
			updates = append(updates, git.RefUpdate{Ref: e.job.refs.landing, Old: e.job.head})
		}
		err = s.queue.repo.UpdateRefs(ctx, updates)
	}
	switch {
	case err == nil:
		failpoint.Hit("landing.moved")
		landing[len(landing)-1].job.log.InfoContext(ctx, "landing moved the target",
			"commit", commit, "tasks", len(landing))
		return true, nil
	case errors.Is(err, muster.ErrStale):
		s.queue.options.Log.InfoContext(ctx, "landing refused", "tip", s.tip)
		return false, s.endStale(ctx, landing)
	}
	return false, err
}

// endStale finds out which landing refs are no longer where their owners have set them. Their owners are told why; the
// others queue again, because it was the target that moved, or what they were merged with is gone.
func (s *stack) endStale(ctx context.Context, landing []entry) error {
	for _, e := range landing {
		at, err := s.queue.repo.Ref(ctx, e.job.refs.landing)
		if err != nil {
			return err
		}
		if at != e.job.head {
			s.decide(e.job, decision{do: doExplainStale})
		}
	}
	s.requeue()
	return nil
}

// settle records what has landed. The top is recorded before anything else is done: where the target may be is told by
// what the board calls landed. The owners of the others record theirs; resume finds what a crash has left.
func (s *stack) settle(ctx context.Context, landing []entry, top muster.Landed) {
	last := len(landing) - 1
	topID := landing[last].job.task.ID
	for i, e := range landing {
		landed := top
		if i < last {
			landed = s.expected()
			landed.Commit = e.commit
			if landed.Receipt == muster.ReceiptCovered {
				landed.CoveredBy = topID
			}
		}
		if i < last && s.queue.answer(e.job, decision{do: doRecord, landed: landed}) {
			continue // its owner records it
		}
		t, err := s.queue.records.complete(ctx, &e.job.work, landed)
		s.queue.target.lookAgain()
		if i == last {
			s.queue.answer(e.job, decision{do: doNothing, task: t, err: err})
		} else if err != nil {
			s.queue.options.Log.WarnContext(ctx, "a landing is not recorded", "task", e.job.task.ID, "err", err)
		}
	}
}

// sendToReview takes those out of the stack whose work is not reviewed yet, so that their owners have it reviewed, and
// lets the others wait again. It reports whether there were any. checked says what the check said of all of them.
//
// Invariant: whatever moves the target calls it first, so that no work lands that lacks its review.
func (s *stack) sendToReview(landing []entry, checked muster.Landed) (isSent bool) {
	for _, e := range slices.Clone(landing) {
		if e.job.needsReview && e.job.approval == "" {
			isSent = true
			s.decide(e.job, decision{do: doReview, landed: checked})
		}
	}
	if isSent {
		s.requeue()
	}
	return isSent
}

// sign makes the commits up to a position anew, the lowest first, each with the user's signature on the one before.
// Only what lands is signed: a stack is made anew many times, and a key may ask for a touch each time. top is what the
// message of the top says.
//
// A signature that cannot be had keeps nothing from landing: the commits stay as they are then, and people are told
// why, once.
func (s *stack) sign(ctx context.Context, at int, top muster.Landed) (commit string, err error) {
	if !s.queue.isSigned() {
		return top.Commit, nil
	}
	signed, below := make([]string, at), s.tip
	for i, e := range s.entries[:at] {
		landed := s.expected()
		if i == at-1 {
			landed = top
		}
		parents, message := s.queue.commitOf(e.job, below, landed)
		if signed[i], err = git.SignedCommit(ctx, s.queue.repo, e.tree, parents, message); err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			return top.Commit, s.queue.tellUnsigned(ctx, err)
		}
		below = signed[i]
	}
	for i, commit := range signed {
		s.entries[i].commit = commit
	}
	return below, nil
}

func (q *queue) isSigned() bool {
	isWanted := q.options.Sign == SignAlways || q.options.Sign != SignNever && git.Signs(q.repo)
	return isWanted && !q.cannotSign
}

// tellUnsigned tells people that commits land without a signature, when that is so for the first time.
func (q *queue) tellUnsigned(ctx context.Context, cause error) error {
	q.options.Log.WarnContext(ctx, "commits cannot be signed", "err", cause)
	q.cannotSign = q.cannotSign || errors.Is(cause, context.DeadlineExceeded) // each landing would wait for it
	if q.isUnsigned {
		return nil
	}
	q.isUnsigned = true
	return q.records.note(ctx, "commits land unsigned, because they cannot be signed: "+muster.PlainText(cause))
}
