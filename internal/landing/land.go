package landing

import (
	"cmp"
	"context"
	"errors"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/worktree"
	"muster/journal"
)

// securedTarget is what a landing asks of the guard.
type securedTarget interface {
	tip(context.Context) (string, error)
	secure(ctx context.Context, lane muster.Name) (*Displaced, error)
	mayBegin(context.Context) error
	lookAgain()
}

// decider is what a landing asks of the queue.
type decider interface {
	decide(context.Context, work) (decision, error)
	checkTip(ctx context.Context, w *work, tip string) (res CheckResult, isRed bool, err error)
}

// landing is one landing under way: the work, and its steps.
type landing struct {
	work
	repo    *git.Repo
	lanes   *worktree.Lanes
	board   *board.Board
	journal *journal.Journal
	records *records
	target  securedTarget
	queue   decider
	explain explainer
	options *Options
	owner   Owner

	text     string   // of a returned task, for its owner's model
	scanned  string   // the head in which no secret was found
	reviewed approval // what an approval of the work would be of, where it needs one
	// leftOut returns what builds have left in the lane, which does not land. It waits until that is found; nil: not
	// looked for.
	leftOut func() []string
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

// LandWith is Land for the process that hosts the task's owner.
func (l *Lander) LandWith(
	ctx context.Context, id muster.TaskID, claim int, summary string, by muster.Name, owner Owner,
) (Verdict, error) {
	// The pauses are 0.1, 0.4 and 1.6 seconds. A wait for the checkout of the target counts as no try.
	x := landing{repo: l.repo, lanes: l.lanes, board: l.board, journal: l.journal, records: l.records,
		target: l.guard, queue: l.queue, explain: explainer{l.repo, l.board}, options: l.options, owner: owner,
		work: work{claim: claim, refs: refsOf(l.repo, id, claim), by: by, summary: summary,
			log: l.options.Log.With("task", id, "fence", claim)}}
	for pause := firstPause; ; {
		v, err := l.land(ctx, id, x)
		if o, ok := errors.AsType[obstacle](err); ok {
			if err := l.guard.wait(ctx, id, claim, o); err != nil {
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

// land is LandWith, once. Each try begins with a landing of its own.
func (l *Lander) land(ctx context.Context, id muster.TaskID, x landing) (Verdict, error) {
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
	x.task, x.by = t, cmp.Or(x.by, t.Owner)
	if t.Fence == x.claim && t.Status == muster.Completed {
		return x.verdict(ctx), nil
	}
	if t.Fence != x.claim || t.Status != muster.InProgress && t.Status != muster.Landing {
		return Verdict{Task: t}, x.refuse(ctx)
	}
	x.log.InfoContext(ctx, "landing begins", "by", x.by, "status", t.Status)
	err = x.run(ctx)
	if x.leftOut != nil {
		x.leftOut() // nothing of a landing outlives it
	}
	return x.verdict(ctx), err
}

func (l *landing) verdict(ctx context.Context) Verdict {
	changes, note := l.describe(ctx)
	return Verdict{Task: l.task, Text: l.text, Changes: changes, Note: note}
}

func (l *landing) run(ctx context.Context) error {
	t := l.task
	// Before anything is compared with the target: a lane with the content of a target that no landing made would seem
	// to have nothing to land.
	d, err := l.target.secure(ctx, t.Worktree)
	if err != nil {
		return err
	}
	if t.Worktree == "" {
		return l.completeUnchanged(ctx)
	}
	if t.Status == muster.Landing && t.Landing != nil {
		if done, err := l.resume(ctx); done || err != nil {
			return err
		}
	}
	// Asked before the commit and the check, which may take minutes: the user should learn at once that landings wait.
	if err = l.target.mayBegin(ctx); err != nil {
		return err
	}
	var changed bool
	if l.head, changed, err = l.lanes.Commit(ctx, t.Worktree, laneMessage(t, l.summary)); err != nil {
		return err
	}
	failpoint.Hit("landing.committed")
	l.leftOut = l.lookForLeftovers(ctx)
	l.log.InfoContext(ctx, "landing committed", "head", l.head, "changed", changed)
	// A task that is landing already may be on the target, so it goes through a try, which finds out.
	if !changed && t.Status == muster.InProgress && d == nil {
		if l.owner.Unchanged != nil {
			if err := l.owner.Unchanged(ctx); err != nil {
				return err
			}
		}
		return l.completeUnchanged(ctx)
	}
	tip, err := l.target.tip(ctx)
	if err != nil {
		return err
	}
	if err := l.begin(ctx, tip); err != nil {
		return err
	}
	if d != nil {
		return l.comeBack(ctx, displaced(l.options.branch(), d.Error()))
	}
	if l.words, err = l.findWords(ctx, tip); err != nil {
		return err
	}
	for {
		if err = l.try(ctx, tip); !errors.Is(err, errMoved) {
			return err
		}
		if tip, err = l.target.tip(ctx); err != nil {
			return err
		}
	}
}

// try queues the work, unless there is a reason to return it before the wait for others, which may take many checks:
// its owner can mend it meanwhile. The error is errMoved when it has to be tried again.
func (l *landing) try(ctx context.Context, tip string) error {
	tree, conflicts, err := l.mergeOnto(ctx, l.repo, tip)
	if err != nil {
		return l.explainUnmergeable(ctx, tip, err)
	}
	if len(conflicts) > 0 {
		return l.mergeInLane(ctx, tip)
	}
	l.merged = merged{onto: tip, head: l.head, tree: tree}
	for _, gate := range l.gates() {
		back, err := gate(ctx, tip)
		if err != nil {
			return err
		}
		if back.reason != "" {
			return l.comeBack(ctx, back)
		}
	}
	if err := l.findApproval(ctx, tip); err != nil {
		return err
	}
	d, err := l.queue.decide(ctx, l.work)
	if err != nil {
		return err
	}
	return l.follow(ctx, d)
}

func (l *landing) follow(ctx context.Context, d decision) error {
	switch d.do {
	case doNothing:
		l.setTask(d.task)
		return d.err
	case doRecord:
		return l.complete(ctx, d.landed)
	case doLandNothing:
		return l.landNothing(ctx, d.tip)
	case doMerge:
		return l.mergeInLane(ctx, d.tip)
	case doExplainUnmergeable:
		return l.explainUnmergeable(ctx, d.tip, d.err)
	case doReturnEmpty:
		return l.comeBack(ctx, empty(l.options.branch()))
	case doReturnRed:
		return l.returnRed(ctx, d.tip, d.result)
	case doReturnDisplaced:
		return l.comeBack(ctx, displaced(l.options.branch(), d.err.Error()))
	case doReview:
		return l.review(ctx, d.landed)
	case doEndClaim:
		if l.setTask(d.task); l.task.Fence == l.claim && l.task.Status == muster.Completed {
			return nil // another process has landed it
		}
		return l.refuse(ctx)
	case doExplainStale:
		return l.explainStale(ctx)
	}
	return d.err
}

// resume looks at what a crash left of a landing: the work may be on the target already, or be returned with conflicts.
func (l *landing) resume(ctx context.Context) (done bool, err error) {
	// A landing that was cut off keeps its summary: the caller may be a recovery, which has none.
	l.summary = cmp.Or(l.summary, l.task.Landing.Summary)
	// The target decides, not the board: a crash after the transaction leaves the task as landing.
	if done, err := l.completeLanded(ctx); done || err != nil {
		return done, err
	}
	open, err := l.lanes.Unresolved(ctx, l.task.Worktree)
	if err != nil || len(open) == 0 {
		return false, err
	}
	var files []string
	for _, c := range open {
		files = append(files, c.File)
	}
	tip, err := l.target.tip(ctx)
	if err != nil {
		return false, err
	}
	l.head = l.task.Landing.Head
	return true, l.returnConflict(ctx, tip, files)
}

// begin makes the head durable, sets the landing ref to it, and notes the landing on the board, with the target's tip.
// In this order a crash never leaves a ref or a note that names a commit which the disk may lose.
func (l *landing) begin(ctx context.Context, tip string) error {
	if err := l.repo.Pack(ctx, tip, l.head); err != nil {
		return err
	}
	failpoint.Hit("landing.packed")
	isRevoked, err := l.refs.raise(ctx, l.head)
	if err != nil {
		return err
	}
	if isRevoked {
		return l.refuse(ctx)
	}
	failpoint.Hit("landing.claimed")
	// A landing that is under way keeps the tip with which it was first noted: a landing whose record a crash lost is
	// searched from there.
	if noted := l.task.Landing; l.task.Status == muster.Landing && noted != nil && noted.Onto != "" {
		tip = noted.Onto
		if noted.Head == l.head {
			return nil
		}
	}
	t, err := l.board.BeginLanding(ctx, l.task.ID, l.claim,
		muster.PendingLanding{Head: l.head, Onto: tip, Summary: l.summary})
	failpoint.Hit("landing.noted")
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return l.refuse(ctx)
	}
	l.setTask(t)
	return err
}

// errMoved is the error of a landing that has to queue again: the target or the lane has moved.
var errMoved = errors.New("the target or the lane has moved")

// explainStale finds out why the transaction was refused. The target has moved: then the error is errMoved. Or the
// landing ref has: then the claim was revoked, or another process has landed it.
func (l *landing) explainStale(ctx context.Context) error {
	at, err := l.repo.Ref(ctx, l.refs.landing)
	if err != nil {
		return err
	}
	if at == l.head {
		return errMoved // the landing ref is untouched, so it was the target that moved
	}
	// Another process that went on with this very claim may have landed it.
	if done, err := l.completeLanded(ctx); done || err != nil {
		return err
	}
	// The ref is at another commit: another process has begun a landing of this claim with a later head of the lane.
	if at != "" {
		return muster.Errorf(muster.Held,
			"task %d is being landed by another process, which goes on with this claim", l.task.ID)
	}
	return l.refuse(ctx)
}

func (l *landing) completeUnchanged(ctx context.Context) error {
	// An end of ctx here would leave a task that is done and open, and its owner would do it again.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	t, err := l.board.Complete(late, l.task.ID, l.claim, board.Outcome{Result: l.summary, By: l.by})
	if errors.Is(err, muster.ErrFenced) {
		return l.refuse(ctx)
	}
	l.setTask(t)
	return err
}

// landNothing ends a landing of which the target has everything already. Where no landing has brought it there, nobody
// has checked it: then the check runs on the target as it is, and a red one returns the task, as for any other landing.
func (l *landing) landNothing(ctx context.Context, tip string) error {
	res, isRed, err := l.queue.checkTip(ctx, &l.work, tip)
	if err != nil {
		return err
	}
	if isRed {
		return l.returnRed(ctx, tip, res)
	}
	if err := l.cancel(ctx); err != nil {
		return err
	}
	return l.completeUnchanged(ctx)
}

func (l *landing) completeLanded(ctx context.Context) (done bool, err error) {
	tip, err := l.target.tip(ctx)
	if err != nil {
		return false, err
	}
	landed, err := findLanded(ctx, l.repo, l.task, tip)
	if err != nil || landed == nil {
		return false, err
	}
	return true, l.complete(ctx, *landed)
}

func (l *landing) complete(ctx context.Context, landed muster.Landed) error {
	t, err := l.records.complete(ctx, &l.work, landed)
	// Until now the target could be where it was before the landing as well. Whoever has seen it there looks again.
	l.target.lookAgain()
	l.setTask(t)
	return err
}
