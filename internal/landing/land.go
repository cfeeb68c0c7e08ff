package landing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/git"
)

// attempt is one landing under way.
type attempt struct {
	task    muster.Task
	claim   int // the claim's number: the task's Fence when it was claimed
	fence   fence
	by      muster.Name
	summary string
	head    string // the commit that is to land
	log     *slog.Logger
}

// Land does all that complete_task asks for. It commits the lane, merges it with the target's tip, runs the check on
// the merged tree, and moves the target in one ref transaction; or it returns the task to its owner, with what to do in
// Verdict.Text. Called again after a crash it goes on where it was. summary is the commit's body and the task's result;
// "" takes the one of the attempt that a crash ended.
//
// Errors: Fenced when the claim is another's now or the task was deleted (the work is kept under refs/muster/archive/),
// Invalid when the lane cannot be committed as it is, Unavailable (after several tries). While somebody has the target
// checked out it waits.
func (l *Lander) Land(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name,
) (Verdict, error) {
	for pause := firstPause; ; pause *= 4 {
		v, err := l.land(ctx, id, claim, summary, by)
		if busy, ok := errors.AsType[*checkedOutError](err); ok {
			if err := l.waitUntilFree(ctx, id, claim, busy); err != nil {
				return v, err
			}
			pause = firstPause / 4
			continue
		}
		// A git that was killed, for want of memory for example, is no reason to lose the member that works.
		_, isGit := errors.AsType[*git.ExitError](err)
		if !isGit && !errors.Is(err, muster.ErrUnavailable) || pause > lastPause {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(pause):
		}
	}
}

// The first and the longest pause before a landing that something outside has ended is tried again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// land is Land, once.
func (l *Lander) land(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name,
) (Verdict, error) {
	// Two calls for one task would commit in its lane at the same time.
	token, _ := l.tasks.LoadOrStore(id, make(chan struct{}, 1))
	unlock, err := lock(ctx, token.(chan struct{}))
	if err != nil {
		return Verdict{}, err
	}
	defer unlock()
	t, err := l.board.Get(ctx, id)
	if err != nil {
		return Verdict{}, err
	}
	// A repeat after a crash, or of a call whose answer was lost: the answer is the same.
	if t.Fence == claim && t.Status == muster.Completed {
		return Verdict{Landed: t.Landed, NoChange: t.Landed == nil, Task: t}, nil
	}
	if t.Fence != claim || t.Status != muster.InProgress && t.Status != muster.Landing {
		return Verdict{Task: t}, l.refuse(ctx, t, claim)
	}
	if by == "" {
		by = t.Owner
	}
	a := &attempt{task: t, claim: claim, fence: fenceOf(l.repo, id, claim), by: by, summary: summary,
		log: l.log.With("task", id, "fence", claim)}
	a.log.InfoContext(ctx, "landing begins", "by", by, "status", t.Status)
	if t.Worktree == "" {
		return l.completeUnchanged(ctx, a)
	}
	if t.Status == muster.Landing && t.Landing != nil {
		if summary == "" {
			a.summary = t.Landing.Summary
		}
		v, done, err := l.resume(ctx, a)
		if done || err != nil {
			return v, err
		}
	}
	// Asked before the commit and the check, which may take minutes: the user should learn at once that landings wait.
	if err := refuseCheckedOut(ctx, l.repo, l.target); err != nil {
		return Verdict{Task: t}, err
	}
	changed := false
	if a.head, changed, err = l.lanes.Commit(ctx, t.Worktree, laneMessage(t, a.summary)); err != nil {
		return Verdict{Task: t}, err
	}
	failpoint.Hit("landing.committed")
	a.log.InfoContext(ctx, "landing committed", "head", a.head, "changed", changed)
	// A task that is landing already may be on the target, so it goes through an attempt, which finds out.
	if !changed && t.Status == muster.InProgress {
		return l.completeUnchanged(ctx, a)
	}
	return l.landCommitted(ctx, a)
}

// landCommitted lands a lane whose work is committed. It tries until the target stands still for one attempt.
func (l *Lander) landCommitted(ctx context.Context, a *attempt) (Verdict, error) {
	if err := l.begin(ctx, a); err != nil {
		return Verdict{Task: a.task}, err
	}
	// One landing of this process at a time: each check would be of a tree that the other landing makes stale.
	unlock, err := lock(ctx, l.turn)
	if err != nil {
		return Verdict{Task: a.task}, err
	}
	defer unlock()
	for {
		v, done, err := l.try(ctx, a)
		if done || err != nil {
			return v, err
		}
	}
}

// resume looks at what a crash left of a landing: the work may be on the target already, or be returned with conflicts.
func (l *Lander) resume(ctx context.Context, a *attempt) (v Verdict, done bool, err error) {
	a.head = a.task.Landing.Head
	// The target decides, not the board: a crash after the transaction leaves the task as landing.
	landed, err := l.findLanded(ctx, a.task)
	if err != nil {
		return Verdict{Task: a.task}, false, err
	}
	if landed != nil {
		v, err := l.complete(ctx, a, *landed)
		return v, true, err
	}
	open, err := l.lanes.Unresolved(ctx, a.task.Worktree)
	if err != nil || len(open) == 0 {
		return Verdict{Task: a.task}, false, err
	}
	var files []string
	for _, c := range open {
		files = append(files, c.File)
	}
	v, err = l.returnConflict(ctx, a, files)
	return v, true, err
}

// begin makes the head durable, sets the landing ref to it, and notes the attempt on the board. In this order a crash
// never leaves a ref or a note that names a commit which the disk may lose.
func (l *Lander) begin(ctx context.Context, a *attempt) error {
	tip, err := l.Target(ctx)
	if err != nil {
		return err
	}
	if err := l.repo.Pack(ctx, []string{a.head}, []string{tip}); err != nil {
		return err
	}
	failpoint.Hit("landing.packed")
	isRevoked, err := a.fence.raise(ctx, a.head)
	if err != nil {
		return err
	}
	if isRevoked {
		return l.refuse(ctx, a.task, a.claim)
	}
	failpoint.Hit("landing.claimed")
	// A landing that is under way keeps the tip with which it was first noted: a landing whose record a crash lost is
	// searched from there.
	onto := tip
	if noted := a.task.Landing; a.task.Status == muster.Landing && noted != nil && noted.Onto != "" {
		onto = noted.Onto
		if noted.Head == a.head {
			return nil
		}
	}
	t, err := l.board.BeginLanding(ctx, a.task.ID, a.claim,
		muster.LandingAttempt{Head: a.head, Onto: onto, Summary: a.summary})
	failpoint.Hit("landing.noted")
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return l.refuse(ctx, a.task, a.claim)
	}
	if t.ID != 0 {
		a.task = t
	}
	return err
}

// try makes one attempt against the target as it is now. done is false when the target or the lane has moved meanwhile.
func (l *Lander) try(ctx context.Context, a *attempt) (v Verdict, done bool, err error) {
	fail := func(err error) (Verdict, bool, error) { return Verdict{Task: a.task}, true, err }
	tip, err := l.Target(ctx)
	if err != nil {
		return fail(err)
	}
	// The merge is of trees only. Neither the user's checkout nor the lane is touched, so a landing can be given up at
	// any moment without cleaning up.
	tree, conflicts, err := l.repo.MergeTree(ctx, tip, a.head)
	if err != nil {
		return l.explainUnmergeable(ctx, a, tip, err)
	}
	if len(conflicts) > 0 {
		return l.mergeInLane(ctx, a, tip)
	}
	tipTree, err := l.repo.Tree(ctx, tip)
	if err != nil {
		return fail(err)
	}
	// Everything that the lane holds is on the target already, by another task's work for example.
	if tree == tipTree {
		if err := l.cancelLanding(ctx, a); err != nil {
			return fail(err)
		}
		v, err := l.completeUnchanged(ctx, a)
		return v, true, err
	}
	// The check sees exactly the tree that lands: the transaction below fails when the tip is another one by then.
	receipt, res, err := l.runCheck(ctx, a, tree, tip)
	if err != nil {
		return fail(err)
	}
	a.log.InfoContext(ctx, "landing checked", "how", res.how, "seconds", res.seconds, "receipt", receipt)
	if receipt == "" {
		v, err := l.returnRed(ctx, a, tip, res)
		return v, true, err
	}
	failpoint.Hit("landing.checked")
	landed := muster.Landed{Receipt: receipt, Seconds: res.seconds}
	if receipt != muster.ReceiptUnchecked {
		landed.Check = l.checker.Command
	}
	if landed.Commit, err = l.makeCommit(ctx, a, tree, tip, landed); err != nil {
		return fail(err)
	}
	failpoint.Hit("landing.made")
	v, done, err = l.moveTarget(ctx, a, tip, landed)
	if v.Landed != nil {
		v.Log = res.log
	}
	return v, done, err
}

// makeCommit makes the commit that lands, and makes it durable: it is in a synced pack before any ref names it, or a
// power cut could leave the target at a commit that the disk does not have.
func (l *Lander) makeCommit(
	ctx context.Context, a *attempt, tree, tip string, landed muster.Landed,
) (commit string, err error) {
	parents := []string{tip}
	if l.mergeCommits {
		parents = append(parents, a.head)
	}
	commit, err = l.repo.CommitTree(ctx, tree, parents, message(a.task, a.summary, a.by, landed))
	if err != nil {
		return "", unavailable(ctx, "the commit cannot be made", err)
	}
	return commit, l.repo.Pack(ctx, []string{commit}, []string{tip})
}

// moveTarget moves the target to the landed commit and deletes the landing ref, in one transaction. The board is asked
// for the last time just before: other programs only write the task, and delete no landing ref.
func (l *Lander) moveTarget(
	ctx context.Context, a *attempt, tip string, landed muster.Landed,
) (v Verdict, done bool, err error) {
	if err = refuseCheckedOut(ctx, l.repo, l.target); err == nil {
		err = l.checkClaim(ctx, a)
	}
	if err == nil {
		failpoint.Hit("landing.moving")
		// Both updates or none. A target that moved, or a claim that was revoked after checkClaim, makes the
		// transaction fail, so neither an untested merge nor a late owner's work can land.
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{
			{Ref: l.target, New: landed.Commit, Old: tip},
			{Ref: a.fence.landing, Old: a.head},
		})
		if errors.Is(err, muster.ErrStale) {
			a.log.InfoContext(ctx, "landing refused", "tip", tip)
			return l.targetMoved(ctx, a)
		}
	}
	if err != nil {
		return Verdict{Task: a.task}, true, err
	}
	failpoint.Hit("landing.moved")
	a.log.InfoContext(ctx, "landing moved the target", "commit", landed.Commit)
	v, err = l.complete(ctx, a, landed)
	return v, true, err
}

// checkClaim asks the board whether the claim may still land.
func (l *Lander) checkClaim(ctx context.Context, a *attempt) error {
	t, err := l.board.Get(ctx, a.task.ID)
	if errors.Is(err, muster.ErrNotFound) {
		return l.refuse(ctx, a.task, a.claim)
	}
	if err == nil && (t.Fence != a.claim || t.Status != muster.Landing) {
		return l.refuse(ctx, t, a.claim)
	}
	return err
}

// targetMoved finds out why the transaction was refused. The target has moved: then done is false, and the landing is
// tried once more. Or the landing ref has: then the claim was revoked, or another process has landed it.
func (l *Lander) targetMoved(ctx context.Context, a *attempt) (v Verdict, done bool, err error) {
	// The landing ref is untouched, so it was the target that moved.
	at, err := a.fence.head(ctx)
	if err != nil || at == a.head {
		return Verdict{Task: a.task}, false, err
	}
	landed, err := l.findLanded(ctx, a.task)
	if err != nil {
		return Verdict{Task: a.task}, true, err
	}
	if landed != nil { // by another process that went on with this very claim
		v, err := l.complete(ctx, a, *landed)
		return v, true, err
	}
	if at != "" {
		return Verdict{Task: a.task}, true, muster.Errorf(muster.Held,
			"task %d is being landed by another process, which goes on with this claim", a.task.ID)
	}
	return Verdict{Task: a.task}, true, l.refuse(ctx, a.task, a.claim)
}

// completeUnchanged completes a task whose lane holds nothing that the target lacks.
func (l *Lander) completeUnchanged(ctx context.Context, a *attempt) (Verdict, error) {
	v := Verdict{NoChange: true, Task: a.task}
	// An end of ctx here would leave a task that is done and open, and its owner would do it again.
	late, cancel := detach(ctx)
	defer cancel()
	t, err := l.board.Complete(late, a.task.ID, a.claim, board.Outcome{Result: a.summary, By: a.by})
	if errors.Is(err, muster.ErrFenced) {
		return v, l.refuse(ctx, a.task, a.claim)
	}
	if t.ID != 0 {
		v.Task = t
	}
	if t.Landed != nil { // another call was faster
		v.NoChange, v.Landed = false, t.Landed
	}
	return v, err
}

// complete records on the board that the work is on the target. A crash before it is recovered by resume, which finds
// the commit.
func (l *Lander) complete(ctx context.Context, a *attempt, landed muster.Landed) (Verdict, error) {
	v := Verdict{Landed: &landed, Seconds: landed.Seconds, Task: a.task}
	late, cancel := detach(ctx)
	defer cancel()
	// The transaction has deleted the landing ref. One is still there when a landing is recognised after a crash that
	// another process had resumed.
	if err := a.fence.remove(late); err != nil {
		return v, err
	}
	failpoint.Hit("landing.lifted")
	if landed.Receipt == muster.ReceiptGreen {
		if err := l.noteGreen(late); err != nil {
			return v, err
		}
	}
	t, err := l.board.Complete(late, a.task.ID, a.claim,
		board.Outcome{Landed: &landed, Result: a.summary, By: a.by})
	failpoint.Hit("landing.recorded")
	a.log.InfoContext(ctx, "landing recorded", "err", err)
	if t.ID != 0 {
		v.Task = t
	}
	return v, err
}
