package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/worktree"
	"muster/journal"
)

// A task whose work has to be reviewed takes its place in the queue like any other. When its check has passed, it
// leaves the stack, and its owner has the work reviewed, beside the reviews of others and the next checks. Approved
// work queues again. The check's receipt makes the second check of the same tree free.
//
// The review comes after the check, because a check costs no tokens and most work that is wrong is red. It comes before
// the transaction, because what has landed is built on at once.
//
// A crash loses nothing that was decided. Before the approval is in its file, the task is landing without one, and
// whoever goes on with it has it checked and reviewed. After that the next process finds the approval by the difference
// of the lane. A process that dies between an answer and its file pays for that review twice, and never for none.
//
// What could go round for ever is bounded: a review by the turns of its agent, a task that gets no verdict by its
// returns, and an owner that changes nothing by the same.

// mustBeReviewed reports whether the work of the task lands only after a review. What takes landed work back does not: the
// user has asked for it.
func (l *landing) mustBeReviewed() bool {
	return (l.options.Review != "" || l.task.Review) && len(l.task.Undoes) == 0
}

// reviewRole returns the role that reviews the work.
func (l *landing) reviewRole() string { return cmp.Or(l.options.Review, DefaultReviewer) }

// findApproval finds out whether the work, as it is now, was approved before: by this process or by one that has died.
func (l *landing) findApproval(ctx context.Context, tip string) (err error) {
	if l.needsReview = l.mustBeReviewed(); !l.needsReview {
		return nil
	}
	was := l.approved
	l.approved = nil
	if l.reviewed, err = l.reviewedWork(ctx, tip); err != nil {
		return err
	}
	if was != nil && was.Key == l.reviewed.Key {
		l.approved = was
	} else if x, ok := readApproval(l.options.Receipts, l.reviewed); ok {
		l.approved = &x
	}
	l.approval = l.approved.String()
	return nil
}

// review has the work reviewed. The error is errMoved when it was approved: then it queues again. Work without a
// verdict is returned, too, and never lands.
func (l *landing) review(ctx context.Context, checked muster.Landed) error {
	role := l.reviewRole()
	diff, err := worktree.DiffOf(ctx, l.repo, l.reviewed.base, l.head)
	if err == nil {
		err = l.emit(ctx, journal.ReviewStarted, map[string]any{"role": role})
	}
	if err != nil {
		return err
	}
	line := func(ctx context.Context, file string, line int) (string, error) {
		return worktree.LineOf(ctx, l.repo, l.head, file, line)
	}
	began := time.Now()
	v, err := ReviewVerdict{}, errNobody
	if l.owner.Review != nil {
		v, err = l.owner.Review(ctx, ReviewRequest{Role: role, Task: l.task, Summary: l.summary, Diff: diff,
			Checked: checked, Line: line})
	}
	if context.Cause(ctx) != nil {
		return context.Cause(ctx) // the landing stays under way, and the next process has the work reviewed
	}
	said := map[string]any{"role": role, "model": v.Model, "seconds": time.Since(began).Seconds(),
		"comments": len(v.Comments), "text": v.Text}
	switch {
	case err != nil:
		said["result"], said["text"] = "none", err.Error()
	case v.Approved:
		said["result"] = "approved"
		l.reviewed.Role, l.reviewed.Model, l.reviewed.At = role, v.Model, time.Now().UTC()
		l.reviewed.Comments, l.reviewed.Text = v.Comments, v.Text
		// Before anybody is told: an approval that a crash loses would be paid twice.
		if err := l.reviewed.keep(l.options.Receipts); err != nil {
			return err
		}
		approved := l.reviewed
		l.approved = &approved
		failpoint.Hit("landing.reviewed")
	default:
		said["result"] = "returned"
	}
	l.log.InfoContext(ctx, "landing reviewed", "role", role, "result", said["result"], "model", v.Model)
	if emitErr := l.emit(ctx, journal.ReviewEnded, said); emitErr != nil {
		return emitErr
	}
	switch {
	case err != nil:
		return l.returnUnreviewed(ctx, role, err)
	case v.Approved:
		return errMoved
	}
	return l.comeBack(ctx, rejected(ctx, role, v, line))
}

// errNobody is the error of a process without a reviewer.
var errNobody = errors.New("this process has no agent for it")

// returnUnreviewed returns a task of which the reviewer has said nothing. It counts, so that the task is set aside in
// the end, with its work in its lane, and the lead is told at once.
func (l *landing) returnUnreviewed(ctx context.Context, role string, why error) error {
	if tell := l.options.TellLead; tell != nil {
		note := fmt.Sprintf("Task #%d could not land: the %s has given no verdict on it: %v. "+
			"Work without a review does not land. Its owner can try again (complete_task).", l.task.ID, role, why)
		if err := tell(ctx, note); err != nil {
			return err
		}
	}
	return l.comeBack(ctx, unreviewed(role, why))
}

// emit writes an event about the task.
func (l *landing) emit(ctx context.Context, kind string, fields map[string]any) error {
	return l.journal.Emit(ctx, muster.Event{Kind: kind, Member: l.task.Owner, Task: l.task.ID, Fields: fields})
}
