package landing

import (
	"context"
	"errors"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
)

// completeUnchanged completes a task whose lane holds nothing that the target lacks.
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

// completeLanded completes a task whose work is on the target already. done is false when it is not there.
func (l *landing) completeLanded(ctx context.Context) (done bool, err error) {
	tip, err := l.target.Target(ctx)
	if err != nil {
		return false, err
	}
	landed, err := findLanded(ctx, l.repo, l.task, tip)
	if err != nil || landed == nil {
		return false, err
	}
	return true, l.complete(ctx, *landed)
}

// complete records on the board that the work is on the target.
func (l *landing) complete(ctx context.Context, landed muster.Landed) error {
	t, err := l.records.complete(ctx, &l.work, landed)
	// Until now the target could be where it was before the landing as well. Whoever has seen it there looks again.
	l.target.lookAgain()
	l.setTask(t)
	return err
}
