package landing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"muster"
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
	head    string // the commit that is to land
	log     *slog.Logger
	turn    // what the queue decides
	merged  merged
	scanned string // the head in which no secret was found

	owner    Owner
	reviewed approval  // what an approval of the work would be of, where it needs one
	approval *approval // of the work as it is; nil: there is none yet
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
	return l.LandWith(ctx, id, claim, summary, by, Owner{})
}

// Owner is what a landing asks of the process that hosts the task's owner. What is nil is not asked.
type Owner struct {
	Review Reviewer
	// Unchanged is called before a task is completed whose lane holds nothing. Its error ends the landing, and the task
	// stays as it is.
	Unchanged func(context.Context) error
}

// LandWith is Land for the process that hosts the task's owner.
func (l *Lander) LandWith(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name, owner Owner,
) (Verdict, error) {
	// The pauses are 0.1, 0.4 and 1.6 seconds. A wait for the checkout of the target counts as no try.
	for pause := firstPause; ; {
		v, err := l.land(ctx, id, claim, summary, by, owner)
		if busy, ok := errors.AsType[*checkedOutError](err); ok {
			if err := l.waitUntilFree(ctx, id, claim, busy); err != nil {
				return v, err
			}
			continue
		}
		if d, ok := errors.AsType[*Displaced](err); ok {
			if err := waitUntilBack(ctx, l, id, claim, d); err != nil {
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

// land is LandWith, once.
func (l *Lander) land(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name, owner Owner,
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
	a := &attempt{Lander: l, v: Verdict{Task: t}, claim: claim, refs: refsOf(l.repo, id, claim), owner: owner,
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
	if t.Status == muster.Landing && t.Landing != nil {
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
		if a.owner.Unchanged != nil {
			if err := a.owner.Unchanged(ctx); err != nil {
				return err
			}
		}
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
	return queueUntilDecided(ctx, a, tip)
}

// queueUntilDecided queues the attempt until something is decided about it that does not make it queue again.
func queueUntilDecided(ctx context.Context, a *attempt, tip string) error {
	for {
		// Asked before the wait for others, which may take many checks: whoever has a conflict can resolve it
		// meanwhile.
		isReturned, err := a.returnEarly(ctx, tip)
		if err == nil && !isReturned {
			isReturned, err = returnSecrets(ctx, a, tip)
		}
		if err == nil && !isReturned {
			err = findApproval(ctx, a, tip)
		}
		if err == nil && !isReturned {
			err = a.await(ctx)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
		if tip, err = a.Target(ctx); err != nil {
			return err
		}
	}
}

// returnEarly returns the task when its work conflicts with the target as it is. The error is errMoved when the lane
// has another head now.
func (a *attempt) returnEarly(ctx context.Context, tip string) (isReturned bool, err error) {
	tree, conflicts, err := mergeHead(ctx, a, tip)
	if err != nil {
		return true, a.explainUnmergeable(ctx, tip, err)
	}
	if len(conflicts) == 0 {
		a.merged = merged{onto: tip, head: a.head, tree: tree}
		return false, nil
	}
	return true, a.mergeInLane(ctx, tip)
}

// resume looks at what a crash left of a landing: the work may be on the target already, or be returned with conflicts.
func (a *attempt) resume(ctx context.Context) (done bool, err error) {
	// A landing that was cut off keeps its summary: the caller may be a recovery, which has none.
	a.summary = cmp.Or(a.summary, a.v.Task.Landing.Summary)
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
	if err := a.repo.Pack(ctx, tip, a.head); err != nil {
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

// errMoved is the error of a landing that has to queue again: the target or the lane has moved.
var errMoved = errors.New("the target or the lane has moved")

// explainOver tells the owner of a claim that is over by the board. Another process may have landed it.
func (a *attempt) explainOver(ctx context.Context) error {
	if a.v.Task.Fence == a.claim && a.v.Task.Status == muster.Completed {
		return nil
	}
	return a.refuse(ctx)
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
