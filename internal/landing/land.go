package landing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/testing/failpoint"
)

// attempt is one landing under way.
type attempt struct {
	task    muster.Task
	fence   int
	by      muster.Name
	summary string
	head    string // what is to land
}

// Land is the whole of complete_task: the lane is committed, merged against the target's tip, checked there, and lands in one
// ref transaction; or it comes back, with what to do in Verdict.Text. Called again after a crash it goes on where it
// was. summary is the commit's body and the task's result; "" takes the one of the attempt that a crash ended.
//
// Errors: Fenced when the claim is another's now or the task was deleted (the work is kept under refs/muster/archive/), Invalid when the lane cannot
// be committed as it is, Unavailable (also after trying again). While somebody has the target checked out it waits.
func (l *Lander) Land(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name) (Verdict, error) {
	for pause := firstPause; ; pause *= 4 {
		v, err := l.land(ctx, id, fence, summary, by)
		if taken, ok := errors.AsType[*checkedOut](err); ok {
			if err := l.waitFor(ctx, id, fence, taken); err != nil {
				return v, err
			}
			pause = firstPause / 4
			continue
		}
		_, isGit := errors.AsType[*git.ExitError](err)
		if !isGit && !errors.Is(err, muster.ErrUnavailable) || pause > lastPause {
			return v, err
		}
		select { // a git that was killed (for want of memory, say) is no reason to lose who works
		case <-ctx.Done():
			return v, err
		case <-time.After(pause):
		}
	}
}

// The pauses before a landing that something outside has cut off is gone on with.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

func (l *Lander) land(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name) (Verdict, error) {
	done, err := l.alone(ctx, id)
	if err != nil {
		return Verdict{}, err
	}
	defer done()
	t, err := l.board.Get(ctx, id)
	if err != nil {
		return Verdict{}, err
	}
	if t.Fence != fence {
		return Verdict{Task: t}, l.late(ctx, t, fence)
	}
	switch t.Status {
	case muster.Completed:
		return Verdict{Landed: t.Landed, NoChange: t.Landed == nil, Task: t}, nil
	case muster.InProgress, muster.Landing:
	default:
		return Verdict{Task: t}, l.late(ctx, t, fence)
	}
	if by == "" {
		by = t.Owner
	}
	a := &attempt{task: t, fence: fence, by: by, summary: summary}
	l.logPhase(ctx, a, "begins", "by", by, "status", t.Status)
	if t.Worktree == "" {
		return l.noChange(ctx, a)
	}
	if t.Status == muster.Landing && t.Landing != nil {
		if summary == "" {
			a.summary = t.Landing.Summary
		}
		v, over, err := l.resume(ctx, a)
		if over || err != nil {
			return v, err
		}
	}
	if err := l.free(ctx); err != nil {
		return Verdict{Task: t}, err
	}
	changed := false
	if a.head, changed, err = l.lanes.Commit(ctx, t.Worktree, laneMessage(t, a.summary)); err != nil {
		return Verdict{Task: t}, err
	}
	failpoint.Point("landing.committed")
	l.logPhase(ctx, a, "committed", "head", a.head, "changed", changed)
	if !changed && t.Status == muster.InProgress {
		return l.noChange(ctx, a)
	}
	if err := l.enter(ctx, a); err != nil {
		return Verdict{Task: a.task}, err
	}
	leave, err := l.queue(ctx)
	if err != nil {
		return Verdict{Task: a.task}, err
	}
	defer leave()
	for {
		v, over, err := l.try(ctx, a)
		if over || err != nil {
			return v, err
		}
	}
}

// logPhase logs how far a landing has come.
func (l *Lander) logPhase(ctx context.Context, a *attempt, phase string, args ...any) {
	l.o.Log.With("task", a.task.ID, "fence", a.fence).InfoContext(ctx, "landing "+phase, args...)
}

// resume looks at what a crash left of a landing: it may be on the target already, or on its way back with conflicts.
func (l *Lander) resume(ctx context.Context, a *attempt) (v Verdict, over bool, err error) {
	a.head = a.task.Landing.Head
	landed, err := l.find(ctx, a.task)
	if err != nil {
		return Verdict{Task: a.task}, false, err
	}
	if landed != nil {
		v, err := l.completed(ctx, a, *landed)
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
	v, err = l.backWithConflict(ctx, a, files)
	return v, true, err
}

// try makes one attempt against the target as it is now. It is not over when the target or the lane has moved
// meanwhile.
func (l *Lander) try(ctx context.Context, a *attempt) (v Verdict, over bool, err error) {
	fail := func(err error) (Verdict, bool, error) { return Verdict{Task: a.task}, true, err }
	tip, err := l.Target(ctx)
	if err != nil {
		return fail(err)
	}
	tree, conflicts, err := l.repo.MergeTree(ctx, tip, a.head)
	if err != nil {
		return l.unmergeable(ctx, a, tip, err)
	}
	if len(conflicts) > 0 {
		return l.conflict(ctx, a, tip)
	}
	was, err := l.repo.Tree(ctx, tip)
	if err != nil {
		return fail(err)
	}
	if tree == was {
		if err := l.withdraw(ctx, a); err != nil {
			return fail(err)
		}
		v, err := l.noChange(ctx, a)
		return v, true, err
	}
	receipt, res, err := l.prove(ctx, a, tree, tip)
	if err != nil {
		return fail(err)
	}
	l.logPhase(ctx, a, "checked", "how", res.how, "seconds", res.seconds, "receipt", receipt)
	if receipt == "" {
		v, err := l.backWithRed(ctx, a, tip, res)
		return v, true, err
	}
	failpoint.Point("landing.checked")
	landed := muster.Landed{Receipt: receipt, Seconds: res.seconds}
	if receipt != muster.ReceiptUnchecked {
		landed.Check = l.o.Check.Command
	}
	parents := []string{tip}
	if l.o.MergeCommits {
		parents = append(parents, a.head)
	}
	if landed.Commit, err = l.repo.CommitTree(ctx, tree, parents, message(a.task, a.summary, a.by, landed)); err != nil {
		return fail(unavailable(ctx, "the commit cannot be made", err))
	}
	if err := l.repo.Pack(ctx, []string{landed.Commit}, []string{tip}); err != nil {
		return fail(err)
	}
	failpoint.Point("landing.made")
	if err := l.free(ctx); err != nil {
		return fail(err)
	}
	if err := l.stillOurs(ctx, a); err != nil {
		return fail(err)
	}
	failpoint.Point("landing.moving")
	err = l.repo.UpdateRefs(ctx, []git.RefUpdate{
		{Ref: l.o.Target, New: landed.Commit, Old: tip},
		{Ref: landingRef(a.task.ID, a.fence), Old: a.head},
	})
	if errors.Is(err, muster.ErrStale) {
		l.logPhase(ctx, a, "refused", "tip", tip)
		return l.overtaken(ctx, a)
	}
	if err != nil {
		return fail(err)
	}
	failpoint.Point("landing.moved")
	l.logPhase(ctx, a, "moved", "commit", landed.Commit)
	v, err = l.completed(ctx, a, landed)
	v.Log = res.log
	return v, true, err
}

// overtaken asks why the transaction was refused: the target has moved (once more, then), or the fence is gone.
func (l *Lander) overtaken(ctx context.Context, a *attempt) (Verdict, bool, error) {
	at, err := l.repo.Ref(ctx, landingRef(a.task.ID, a.fence))
	if err != nil || at == a.head {
		return Verdict{Task: a.task}, false, err
	}
	if landed, err := l.find(ctx, a.task); err != nil {
		return Verdict{Task: a.task}, true, err
	} else if landed != nil { // by another process that went on with this very claim
		v, err := l.completed(ctx, a, *landed)
		return v, true, err
	}
	if at != "" {
		return Verdict{Task: a.task}, true, muster.Errorf(muster.Held, "task %d is being landed by another process, which goes on with this claim", a.task.ID)
	}
	return Verdict{Task: a.task}, true, l.late(ctx, a.task, a.fence)
}

// conflict merges the target into the lane. Where that needs nobody (a merge in a worktree obeys attributes that one on
// trees does not), the landing goes on; else it comes back.
func (l *Lander) conflict(ctx context.Context, a *attempt, tip string) (Verdict, bool, error) {
	files, err := l.lanes.Merge(ctx, a.task.Worktree, tip)
	if err != nil {
		return Verdict{Task: a.task}, true, err
	}
	if len(files) > 0 {
		v, err := l.backWithConflict(ctx, a, files)
		return v, true, err
	}
	if a.head, _, err = l.lanes.Commit(ctx, a.task.Worktree, mergeMessage(l.branch())); err != nil {
		return Verdict{Task: a.task}, true, err
	}
	return Verdict{Task: a.task}, false, l.enter(ctx, a)
}

// unmergeable asks why git could not merge at all. Histories without a common commit come back: somebody has moved the
// lane's branch, or the target.
func (l *Lander) unmergeable(ctx context.Context, a *attempt, tip string, cause error) (Verdict, bool, error) {
	v := Verdict{Task: a.task}
	related, err := l.repo.Related(ctx, tip, a.head)
	if err != nil || related {
		return v, true, unavailable(ctx, "the work cannot be merged", cause)
	}
	text := targetMovedText(l.branch())
	if own, err := l.repo.IsAncestor(ctx, a.task.Base, a.head); err == nil && !own {
		text = laneMovedText(l.branch(), a.task.Base)
	}
	err = l.comeBack(ctx, a, &v, "conflict", text, board.Details{Text: "everything: it has no common history with " + l.branch()})
	return v, true, err
}

// backWithConflict returns the task to its owner, whose lane holds the conflicts.
func (l *Lander) backWithConflict(ctx context.Context, a *attempt, files []string) (Verdict, error) {
	v := Verdict{Conflict: files, Task: a.task}
	text := conflictText(l.branch(), files)
	err := l.comeBack(ctx, a, &v, "conflict", text, board.Details{Text: fileList(files)})
	return v, err
}

// backWithRed returns the task to its owner with the log. What the target has beyond the lane is merged into the lane
// first: the check failed on both together, and the owner must be able to see it fail.
func (l *Lander) backWithRed(ctx context.Context, a *attempt, tip string, res result) (Verdict, error) {
	v := Verdict{Red: true, Log: res.log, Seconds: res.seconds, Task: a.task}
	merged, err := l.bringIn(ctx, a, tip)
	if err != nil {
		return v, err
	}
	text := redText(l.branch(), res, merged)
	err = l.comeBack(ctx, a, &v, "check", text, board.Details{Text: lastLines(res.tail, 20), Log: res.log, Seconds: res.seconds})
	return v, err
}

// bringIn merges the target into the lane if the lane lacks something of it.
func (l *Lander) bringIn(ctx context.Context, a *attempt, tip string) (merged bool, err error) {
	has, err := l.repo.IsAncestor(ctx, tip, a.head)
	if err != nil || has {
		return false, err
	}
	files, err := l.lanes.Merge(ctx, a.task.Worktree, tip)
	if err != nil || len(files) > 0 {
		return err == nil, err // a conflict here is the owner's to resolve, as it would be at the next landing
	}
	_, _, err = l.lanes.Commit(ctx, a.task.Worktree, mergeMessage(l.branch()))
	return err == nil, err
}

// comeBack ends the landing: the fence is lifted first, so that nothing lands any more, then the board is told.
func (l *Lander) comeBack(ctx context.Context, a *attempt, v *Verdict, why, text string, d board.Details) error {
	if err := l.withdraw(ctx, a); err != nil {
		return err
	}
	failpoint.Point("landing.withdrawn")
	late, cancel := grace(ctx)
	defer cancel()
	t, err := l.board.Return(late, a.task.ID, a.fence, why, d)
	failpoint.Point("landing.returned")
	if errors.Is(err, muster.ErrFenced) {
		return l.late(ctx, a.task, a.fence)
	}
	if t.ID != 0 {
		v.Task = t
	}
	if v.Task.Status == muster.NeedsAttention {
		text = fmt.Sprintf("This was the last of %d times in a row: the task needs attention now and is no longer yours; its lane is kept.\n", t.Returns) + text
	}
	v.Text = text
	return err
}

// noChange completes a task whose lane holds nothing that the target lacks.
func (l *Lander) noChange(ctx context.Context, a *attempt) (Verdict, error) {
	v := Verdict{NoChange: true, Task: a.task}
	late, cancel := grace(ctx)
	defer cancel()
	t, err := l.board.Complete(late, a.task.ID, a.fence, board.Outcome{Result: a.summary, By: a.by})
	if errors.Is(err, muster.ErrFenced) {
		return v, l.late(ctx, a.task, a.fence)
	}
	if t.ID != 0 {
		v.Task = t
	}
	if t.Landed != nil { // another call was faster
		v.NoChange, v.Landed = false, t.Landed
	}
	return v, err
}

// completed records that the work is on the target.
func (l *Lander) completed(ctx context.Context, a *attempt, landed muster.Landed) (Verdict, error) {
	v := Verdict{Landed: &landed, Seconds: landed.Seconds, Task: a.task}
	late, cancel := grace(ctx)
	defer cancel()
	if err := l.lift(late, a); err != nil {
		return v, err
	}
	failpoint.Point("landing.lifted")
	if landed.Receipt == muster.ReceiptGreen {
		if err := l.turnedGreen(late); err != nil {
			return v, err
		}
	}
	t, err := l.board.Complete(late, a.task.ID, a.fence, board.Outcome{Landed: &landed, Result: a.summary, By: a.by})
	failpoint.Point("landing.recorded")
	l.logPhase(ctx, a, "recorded", "err", err)
	if t.ID != 0 {
		v.Task = t
	}
	return v, err
}

// grace is for last writes: they go on without the cancel.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s: %w", what, err)
}
