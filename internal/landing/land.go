package landing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/internal/git"
)

// attempt is one landing under way.
type attempt struct {
	*Lander
	v       Verdict // how it ended; v.Task is the task as it was read last
	claim   int     // the claim's number: the task's Fence when it was claimed
	refs    landingRefs
	by      muster.Name
	summary string
	head    string   // the commit that is to land
	base    string   // the target's tip when the head was packed
	packed  []string // the head and the commits that were made to land it
	pack    string   // the pack that has them; "" when there was nothing to pack
	log     *slog.Logger
}

// Land does all that complete_task asks for. It commits the lane, merges it with the target's tip, runs the check on
// the merged tree, and moves the target in one ref transaction; or it returns the task to its owner, with what to do in
// Verdict.Text. Called again after a crash it goes on where it was. summary is the commit's body and the task's result;
// "" takes the one of the attempt that a crash ended.
//
// Errors: Fenced when the claim is another's now or the task was deleted (the work is kept under refs/muster/archive/),
// Invalid when the lane cannot be committed as it is, Unavailable (after several tries). While somebody has the target
// checked out it waits, and while the target is where the user may have moved it.
func (l *Lander) Land(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name,
) (Verdict, error) {
	// The pauses are 0.1, 0.4 and 1.6 seconds. A wait for the checkout of the target counts as no try.
	for pause := firstPause; ; {
		v, err := l.land(ctx, id, claim, summary, by)
		if busy, ok := errors.AsType[*checkedOutError](err); ok {
			l.options.Order.Outside(ctx, func() { err = l.waitUntilFree(ctx, id, claim, busy) })
			if err != nil {
				return v, err
			}
			continue
		}
		if d, ok := errors.AsType[*Displaced](err); ok {
			l.options.Order.Outside(ctx, func() { err = waitUntilBack(ctx, l, id, claim, d) })
			if err != nil {
				return v, err
			}
			continue
		}
		// A git that was killed, for want of memory for example, is no reason to lose the member that works.
		_, isGit := errors.AsType[*git.ExitError](err)
		if !isGit && !errors.Is(err, muster.ErrUnavailable) || pause > lastPause {
			return v, err
		}
		if clock.Sleep(ctx, pause) != nil {
			return v, err
		}
		pause *= 4
	}
}

// The first and the longest pause before a landing that something outside has ended is tried again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 1600 * time.Millisecond
)

// land is Land, once.
func (l *Lander) land(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name,
) (Verdict, error) {
	// Two calls for one task would commit in its lane at the same time. The channel of a task stays for as long as the
	// process lives; it is small.
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
		return Verdict{Task: t}, nil
	}
	a := &attempt{Lander: l, v: Verdict{Task: t}, claim: claim, refs: refsOf(l.repo, id, claim),
		by: cmp.Or(by, t.Owner), summary: summary, log: l.options.Log.With("task", id, "fence", claim)}
	if t.Fence != claim || t.Status != muster.InProgress && t.Status != muster.Landing {
		return a.v, a.refuse(ctx)
	}
	a.log.InfoContext(ctx, "landing begins", "by", a.by, "status", t.Status)
	err = a.run(ctx)
	return a.v, err
}

// run takes the work of the lane to the target, or returns the task.
func (a *attempt) run(ctx context.Context) error {
	t := a.v.Task
	// Before anything is compared with the target: a lane with the content of a target that no landing made would seem
	// to have nothing to land.
	d, err := a.secure(ctx)
	if err != nil {
		return err
	}
	if t.Worktree == "" {
		return a.completeUnchanged(ctx)
	}
	// A landing that was cut off keeps its summary: the caller may be a recovery, which has none.
	if t.Status == muster.Landing && t.Landing != nil {
		a.summary = cmp.Or(a.summary, t.Landing.Summary)
		if done, err := a.resume(ctx); done || err != nil {
			return err
		}
	}
	// Asked before the commit and the check, which may take minutes: the user should learn at once that landings wait.
	if err = refuseUsers(ctx, a.Lander); err != nil {
		return err
	}
	a.wasCheckedOut.Store(false)
	a.waitedFor.Clear() // whoever waits next waits for another checkout, and says so
	var changed bool
	if a.head, changed, err = a.lanes.Commit(ctx, t.Worktree, laneMessage(t, a.summary)); err != nil {
		return err
	}
	failpoint.Hit("landing.committed")
	a.log.InfoContext(ctx, "landing committed", "head", a.head, "changed", changed)
	// A task that is landing already may be on the target, so it goes through a try, which finds out.
	if !changed && t.Status == muster.InProgress && d == nil {
		return a.completeUnchanged(ctx)
	}
	tip, err := a.Target(ctx)
	if err != nil {
		return err
	}
	if err := a.begin(ctx, tip); err != nil {
		return err
	}
	if d != nil {
		return a.returnDisplaced(ctx, d)
	}
	// One landing of this process at a time: each check would be of a tree that the other landing makes stale.
	unlock, err := takeSlot(ctx, a.Lander)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		if err := a.try(ctx); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// resume looks at what a crash left of a landing: the work may be on the target already, or be returned with conflicts.
func (a *attempt) resume(ctx context.Context) (done bool, err error) {
	// The target decides, not the board: a crash after the transaction leaves the task as landing.
	if done, err := a.completeLanded(ctx); done || err != nil {
		return done, err
	}
	open, err := a.lanes.Unresolved(ctx, a.v.Task.Worktree)
	if err != nil || len(open) == 0 {
		return false, err
	}
	var files []string
	for _, c := range open {
		files = append(files, c.File)
	}
	tip, err := a.Target(ctx)
	if err != nil {
		return false, err
	}
	a.head = a.v.Task.Landing.Head
	return true, a.returnConflict(ctx, tip, files)
}

// begin makes the head durable, sets the landing ref to it, and notes the attempt on the board, with the target's tip.
// In this order a crash never leaves a ref or a note that names a commit which the disk may lose.
func (a *attempt) begin(ctx context.Context, tip string) error {
	var err error
	a.base, a.packed = tip, []string{a.head}
	if a.pack, err = a.repo.Pack(ctx, a.base, "", a.packed...); err != nil {
		return err
	}
	failpoint.Hit("landing.packed")
	isRevoked, err := a.refs.raise(ctx, a.head)
	if err != nil {
		return err
	}
	if isRevoked {
		return a.refuse(ctx)
	}
	failpoint.Hit("landing.claimed")
	// A landing that is under way keeps the tip with which it was first noted: a landing whose record a crash lost is
	// searched from there.
	if noted := a.v.Task.Landing; a.v.Task.Status == muster.Landing && noted != nil && noted.Onto != "" {
		tip = noted.Onto
		if noted.Head == a.head {
			return nil
		}
	}
	t, err := a.board.BeginLanding(ctx, a.v.Task.ID, a.claim,
		muster.PendingLanding{Head: a.head, Onto: tip, Summary: a.summary})
	failpoint.Hit("landing.noted")
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return a.refuse(ctx)
	}
	a.setTask(t)
	return err
}

// errMoved is the error of a try that has to be made again.
var errMoved = errors.New("the target or the lane has moved")

// try makes one attempt against the target as it is now. The error is errMoved when the target or the lane has moved
// meanwhile.
func (a *attempt) try(ctx context.Context) error {
	d, err := a.secure(ctx)
	if err != nil {
		return err
	}
	if d != nil {
		return a.returnDisplaced(ctx, d)
	}
	tip, err := a.Target(ctx)
	if err != nil {
		return err
	}
	// The merge is of trees only. Neither the user's checkout nor the lane is touched, so a landing can be given up at
	// any moment without cleaning up.
	tree, conflicts, err := a.repo.MergeTree(ctx, tip, a.head)
	if err != nil {
		return a.explainUnmergeable(ctx, tip, err)
	}
	if len(conflicts) > 0 {
		return a.mergeInLane(ctx, tip)
	}
	tipTree, err := a.repo.Tree(ctx, tip)
	if err != nil {
		return err
	}
	if isEmptyTree(tree) && tree != tipTree {
		return a.returnTask(ctx, "empty", emptyText(a.branch()), board.Details{Text: "the lane has no file any more"})
	}
	// Everything that the lane holds is on the target already, by another task's work for example.
	if tree == tipTree {
		return a.landNothing(ctx, tip)
	}
	// The check sees exactly the tree that lands: the transaction below fails when the tip is another one by then.
	landed, res, err := a.runCheck(ctx, tree, tip)
	if err != nil {
		return err
	}
	a.noteGoneInCheck(ctx)
	a.log.InfoContext(ctx, "landing checked", "how", res.How, "seconds", res.Seconds, "receipt", landed.Receipt)
	if landed.Receipt == "" {
		return a.returnRed(ctx, tip, res)
	}
	failpoint.Hit("landing.checked")
	if landed.Commit, err = a.makeCommit(ctx, tree, tip, landed); err != nil {
		return err
	}
	failpoint.Hit("landing.made")
	return a.moveTarget(ctx, tip, landed)
}

// makeCommit makes the commit that lands, and makes it durable: it is in a synced pack before any ref names it, or a
// power cut could leave the target at a commit that the disk does not have.
func (a *attempt) makeCommit(ctx context.Context, tree, tip string, landed muster.Landed) (commit string, err error) {
	// The tip is always the first parent: findLanded follows first parents only.
	parents := []string{tip}
	if a.options.MergeCommits {
		parents = append(parents, a.head)
	}
	commit, err = a.repo.CommitTree(ctx, tree, parents, message(a.v.Task, a.summary, a.by, landed))
	if err != nil {
		return "", unavailable(ctx, "the commit cannot be made", err)
	}
	// The new pack takes the place of the one before, so that a landing leaves one pack.
	a.packed = append(a.packed, commit)
	a.pack, err = a.repo.Pack(ctx, a.base, a.pack, a.packed...)
	return commit, err
}

// maxPacks is how many packs landings leave before they are merged. git itself packs anew at as many.
const maxPacks = 50

// moveTarget moves the target to the landed commit and deletes the landing ref, in one transaction. The board is asked
// for the last time just before: other programs only write the task, and delete no landing ref.
func (a *attempt) moveTarget(ctx context.Context, tip string, landed muster.Landed) error {
	if err := refuseUsers(ctx, a.Lander); err != nil {
		return err
	}
	t, err := a.board.Get(ctx, a.v.Task.ID)
	if errors.Is(err, muster.ErrNotFound) || err == nil && (t.Fence != a.claim || t.Status != muster.Landing) {
		a.setTask(t)
		return a.refuse(ctx)
	}
	if err != nil {
		return err
	}
	if err := a.announce(ctx, tip, landed.Commit); errors.Is(err, errMoved) {
		return a.explainStale(ctx)
	} else if err != nil {
		return err
	}
	failpoint.Hit("landing.moving")
	// Both updates or none. A target that moved, or a claim that was revoked after the board was asked, makes the
	// transaction fail, so neither an untested merge nor a late owner's work can land.
	err = a.repo.UpdateRefs(ctx, []git.RefUpdate{
		{Ref: a.options.Target, New: landed.Commit, Old: tip},
		{Ref: a.refs.landing, Old: a.head},
	})
	if errors.Is(err, muster.ErrStale) {
		a.log.InfoContext(ctx, "landing refused", "tip", tip)
		return a.explainStale(ctx)
	}
	if err != nil {
		return err
	}
	failpoint.Hit("landing.moved")
	a.log.InfoContext(ctx, "landing moved the target", "commit", landed.Commit)
	err = a.complete(ctx, landed)
	if mergeErr := a.repo.MergePacks(ctx, maxPacks); mergeErr != nil {
		a.log.WarnContext(ctx, "packs cannot be merged", "err", mergeErr)
	}
	return err
}

// explainStale finds out why the transaction was refused. The target has moved: then the error is errMoved. Or the
// landing ref has: then the claim was revoked, or another process has landed it.
func (a *attempt) explainStale(ctx context.Context) error {
	at, err := a.repo.Ref(ctx, a.refs.landing)
	if err != nil {
		return err
	}
	if at == a.head {
		return errMoved // the landing ref is untouched, so it was the target that moved
	}
	// Another process that went on with this very claim may have landed it.
	if done, err := a.completeLanded(ctx); done || err != nil {
		return err
	}
	// The ref is at another commit: another process has begun a landing of this claim with a later head of the lane.
	if at != "" {
		return muster.Errorf(muster.Held,
			"task %d is being landed by another process, which goes on with this claim", a.v.Task.ID)
	}
	return a.refuse(ctx)
}
