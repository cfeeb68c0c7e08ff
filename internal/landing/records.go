package landing

import (
	"cmp"
	"context"
	"fmt"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/journal"
)

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
		return "", fmt.Errorf("what the check said of %s before cannot be read or recorded: %w", r.options.branch(), err)
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

// note tells people something that concerns the whole run.
func (r *records) note(ctx context.Context, text string) error {
	return r.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

// landed returns the commits that the board says have landed.
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
