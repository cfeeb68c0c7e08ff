package landing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/check"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/journal"
)

// work is the document of a landing: what is to land, and for which claim. Its steps fill it in; the queue reads it.
type work struct {
	task    muster.Task // as it was read last
	claim   int         // the claim's number: the task's Fence when it was claimed
	refs    landingRefs
	by      muster.Name
	summary string
	head    string // the commit that is to land
	words   words  // what the landed commit says
	merged  merged
	log     *slog.Logger

	needsReview bool
	approval    string // who has approved the work as it is; "": nobody has
}

// setTask notes the task as the board has just returned it. A failed call of the board returns none.
func (w *work) setTask(t muster.Task) {
	if t.ID != 0 {
		w.task = t
	}
}

func (w *work) checkOf(commit string) check.Job {
	return check.Job{Commit: commit, Name: fmt.Sprintf("task-%d-%d", w.task.ID, w.claim), Task: w.task.ID}
}

// merged is the tree of a head that was merged with a commit and did not conflict.
type merged struct{ onto, head, tree string }

// mergeOnto is MergeTree of a commit and the head. The merge that was made last without a conflict is not made once
// more.
func (w *work) mergeOnto(ctx context.Context, repo *git.Repo, at string) (tree string, conflicts []string, err error) {
	if m := w.merged; m.onto == at && m.head == w.head {
		return m.tree, nil, nil
	}
	return repo.MergeTree(ctx, at, w.head)
}

// leftAt returns the commit at which the lane left the target.
func (w *work) leftAt(ctx context.Context, repo *git.Repo, tip string) (string, error) {
	base, err := repo.Run(ctx, repo.CommonDir(), "merge-base", tip, w.head)
	if err != nil {
		return "", unavailable(ctx, "git cannot tell where the lane left the target", err)
	}
	return strings.TrimSpace(base), nil
}

// records is what landings write down beside git's refs: on the board, in the journal, and in the run's record.
type records struct {
	board   *board.Board
	journal *journal.Journal
	options *Options
}

// unavailable says what could not be done. Such a landing is tried again. The end of ctx stays what it is.
func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s: %w", what, err)
}

// What is known of the target's check, in the words of run.json. "" means that nobody has asked yet.
const (
	BaseGreen = "ok"  // it passed on the base, or a landing has turned it green: no landing may make it red
	BaseRed   = "red" // it failed on the base, and no landing has turned it green yet
	// ForgetBase is said of a target that the user has moved: what was known is of another commit. It is in no record.
	ForgetBase = "forget"
)

// base records what the check said of the target, "" to record nothing, and returns what was known before.
// Red replaces nothing: once a landing was green, red on the target is news and never an excuse. An error is never
// taken for "nobody has asked yet": a red check would otherwise be compared with another base than the run's own.
func (r *records) base(ctx context.Context, said string) (before string, err error) {
	// Also when ctx has just ended: the answer cost a whole check.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if before, err = r.options.CheckState(late, said); err != nil {
		return "", fmt.Errorf("what the check said of %s before cannot be read or recorded: %w",
			r.options.branch(), err)
	}
	return before, nil
}

// noteGreen records that a landing's check was green: from now on a red one is refused.
func (r *records) noteGreen(ctx context.Context) error {
	before, err := r.base(ctx, BaseGreen)
	if err != nil || before != BaseRed {
		return err
	}
	return r.note(ctx, "the check is green on "+r.options.branch()+
		" now: from here on a landing whose check is red comes back")
}

func (r *records) note(ctx context.Context, text string) error {
	return r.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

func (r *records) landed(ctx context.Context) (map[string]bool, error) {
	tasks, err := r.board.List(ctx)
	landed := map[string]bool{}
	for _, t := range tasks {
		if t.Landed != nil {
			landed[t.Landed.Commit] = true
		}
	}
	return landed, err
}

// complete records on the board that the work is on the target. A crash before it is recovered by resume, which finds
// the commit.
func (r *records) complete(ctx context.Context, w *work, landed muster.Landed) (muster.Task, error) {
	landed.Review = cmp.Or(landed.Review, w.approval)
	late, cancel := clock.Detach(ctx)
	defer cancel()
	// The transaction has deleted the landing ref. One is still there when a landing is recognised after a crash that
	// another process had resumed.
	if _, err := w.refs.remove(late); err != nil {
		return muster.Task{}, err
	}
	failpoint.Hit("landing.lifted")
	if landed.Receipt == muster.ReceiptGreen {
		if err := r.noteGreen(late); err != nil {
			return muster.Task{}, err
		}
	}
	t, err := r.board.Complete(late, w.task.ID, w.claim,
		board.Outcome{Landed: &landed, Result: w.summary, By: w.by})
	failpoint.Hit("landing.recorded")
	w.log.InfoContext(ctx, "landing recorded", "err", err)
	return t, err
}
