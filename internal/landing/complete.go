package landing

import (
	"cmp"
	"context"
	"errors"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
)

// completeUnchanged completes a task whose lane holds nothing that the target lacks.
func (a *attempt) completeUnchanged(ctx context.Context) error {
	// An end of ctx here would leave a task that is done and open, and its owner would do it again.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	t, err := a.board.Complete(late, a.v.Task.ID, a.claim, board.Outcome{Result: a.summary, By: a.by})
	if errors.Is(err, muster.ErrFenced) {
		return a.refuse(ctx)
	}
	a.setTask(t)
	return err
}

// landNothing ends a landing of which the target has everything already. Where no landing has brought it there, nobody
// has checked it: then the check runs on the target as it is, and a red one returns the task, as for any other landing.
func (a *attempt) landNothing(ctx context.Context, tip string) error {
	isKnown, err := isChecked(ctx, a.Lander, tip)
	if err != nil {
		return err
	}
	if !isKnown {
		unlock, err := takeSlot(ctx, a.Lander)
		if err != nil {
			return err
		}
		defer unlock()
		res, err := a.check(ctx, a.checkOf(tip), nil)
		if err != nil {
			return err
		}
		receipt, err := a.receiptOf(ctx, tip, &res)
		if err != nil {
			return err
		}
		if receipt == "" {
			return a.returnRed(ctx, tip, res)
		}
		a.checked.Store(&tip)
	}
	if err := a.cancel(ctx); err != nil {
		return err
	}
	return a.completeUnchanged(ctx)
}

// completeLanded completes a task whose work is on the target already. done is false when it is not there.
func (a *attempt) completeLanded(ctx context.Context) (done bool, err error) {
	landed, err := a.findLanded(ctx, a.v.Task)
	if err != nil || landed == nil {
		return false, err
	}
	return true, a.complete(ctx, *landed)
}

// complete records on the board that the work is on the target. A crash before it is recovered by resume, which finds
// the commit.
func (a *attempt) complete(ctx context.Context, landed muster.Landed) error {
	landed.Review = cmp.Or(landed.Review, a.approval.String())
	late, cancel := clock.Detach(ctx)
	defer cancel()
	// The transaction has deleted the landing ref. One is still there when a landing is recognised after a crash that
	// another process had resumed.
	if _, err := a.refs.remove(late); err != nil {
		return err
	}
	failpoint.Hit("landing.lifted")
	if landed.Receipt == muster.ReceiptGreen {
		if err := a.noteGreen(late); err != nil {
			return err
		}
	}
	t, err := a.board.Complete(late, a.v.Task.ID, a.claim,
		board.Outcome{Landed: &landed, Result: a.summary, By: a.by})
	failpoint.Hit("landing.recorded")
	// Until now the target could be where it was before the landing as well. Whoever has seen it there looks again.
	a.verified.Store(nil)
	a.log.InfoContext(ctx, "landing recorded", "err", err)
	a.setTask(t)
	return err
}

// setTask notes the task as the board has just returned it. A failed call of the board returns none.
func (a *attempt) setTask(t muster.Task) {
	if t.ID != 0 {
		a.v.Task = t
	}
}
