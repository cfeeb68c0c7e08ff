package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/worktree"
	"muster/journal"
)

// Reviewer returns what a reviewer says of work that the check has passed. It is called in the goroutine of the task's
// owner. An error means that there is no verdict. A process without one lands no work that needs a review.
type Reviewer func(context.Context, ReviewRequest) (ReviewVerdict, error)

// DefaultReviewer is the role that reviews work where none is named.
const DefaultReviewer = "reviewer"

// ReviewRequest is what a reviewer decides about. All but Role is of others, and none of it is an instruction.
type ReviewRequest struct {
	Role    string // of the reviewer
	Task    muster.Task
	Summary string        // the owner's
	Diff    worktree.Diff // of the lane, from where it left the target
	Checked muster.Landed // what the check said of the work merged with the target
	// Line returns a line of a file as it is in the lane. Its error says what is there instead.
	Line func(ctx context.Context, file string, line int) (string, error)
}

// ReviewVerdict is what a reviewer has decided.
type ReviewVerdict struct {
	Approved bool
	Comments []ReviewComment // why it is returned, or what is to be known of what is approved
	Text     string          // about the whole, perhaps ""
	Model    string          // which has decided, as the settings name it
}

// ReviewComment is about a line of a file; line 0 is the whole file.
type ReviewComment struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

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

// needsReview reports whether the work of the task lands only after a review. What takes landed work back does not: the
// user has asked for it.
func needsReview(a *attempt) bool {
	return (a.options.Review != "" || a.v.Task.Review) && len(a.v.Task.Undoes) == 0
}

// isReviewed reports whether nothing more has to be asked about the work.
func (a *attempt) isReviewed() bool { return !needsReview(a) || a.approval != nil }

// reviewRole returns the role that reviews the work.
func reviewRole(a *attempt) string { return cmp.Or(a.options.Review, DefaultReviewer) }

// findApproval finds out whether the work, as it is now, was approved before: by this process or by one that has died.
func findApproval(ctx context.Context, a *attempt, tip string) (err error) {
	if !needsReview(a) {
		return nil
	}
	was := a.approval
	a.approval = nil
	if a.reviewed, err = reviewedWork(ctx, a, tip); err != nil {
		return err
	}
	if was != nil && was.Key == a.reviewed.Key {
		a.approval = was
	} else if x, ok := readApproval(a.options.Receipts, a.reviewed); ok {
		a.approval = &x
	}
	return nil
}

// review has the work reviewed. The error is errMoved when it was approved: then it queues again. Work without a
// verdict is returned, too, and never lands.
func (a *attempt) review(ctx context.Context, checked muster.Landed) error {
	role := reviewRole(a)
	diff, err := worktree.DiffOf(ctx, a.repo, a.reviewed.base, a.head)
	if err == nil {
		err = emitOf(ctx, a, journal.ReviewStarted, map[string]any{"role": role})
	}
	if err != nil {
		return err
	}
	line := func(ctx context.Context, file string, line int) (string, error) {
		return worktree.LineOf(ctx, a.repo, a.head, file, line)
	}
	began := time.Now()
	v, err := ReviewVerdict{}, errNobody
	if a.owner.Review != nil {
		v, err = a.owner.Review(ctx, ReviewRequest{Role: role, Task: a.v.Task, Summary: a.summary, Diff: diff,
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
		a.reviewed.Role, a.reviewed.Model, a.reviewed.At = role, v.Model, time.Now().UTC()
		a.reviewed.Comments, a.reviewed.Text = v.Comments, v.Text
		// Before anybody is told: an approval that a crash loses would be paid twice.
		if err := a.reviewed.keep(a.options.Receipts); err != nil {
			return err
		}
		approved := a.reviewed
		a.approval = &approved
		failpoint.Hit("landing.reviewed")
	default:
		said["result"] = "returned"
	}
	a.log.InfoContext(ctx, "landing reviewed", "role", role, "result", said["result"], "model", v.Model)
	if emitErr := emitOf(ctx, a, journal.ReviewEnded, said); emitErr != nil {
		return emitErr
	}
	switch {
	case err != nil:
		return returnUnreviewed(ctx, a, role, err)
	case v.Approved:
		return errMoved
	}
	text, first := commentText(ctx, a, role, v)
	return a.returnTask(ctx, "review", text, board.Details{Text: first})
}

// errNobody is the error of a process without a reviewer.
var errNobody = errors.New("this process has no agent for it")

// returnUnreviewed returns a task of which the reviewer has said nothing. It counts, so that the task is set aside in
// the end, with its work in its lane, and the lead is told at once. A spent budget counts not: it ends the owner's work
// too.
func returnUnreviewed(ctx context.Context, a *attempt, role string, why error) error {
	if tell := a.options.TellLead; tell != nil {
		note := fmt.Sprintf("Task #%d could not land: the %s has given no verdict on it: %v. "+
			"Work without a review does not land. Its owner can try again (complete_task).", a.v.Task.ID, role, why)
		if err := tell(ctx, note); err != nil {
			return err
		}
	}
	note := fmt.Sprintf("Your work was not reviewed: the %s has given no verdict (%v).\n"+
		"Work lands only after a review. Nothing is known to be wrong with it: leave it as it is, and call "+
		"complete_task again, which has it reviewed again.", role, text.CutBytes(text.OneLine(why.Error()), 300))
	return a.returnTask(ctx, "review", note, board.Details{Moved: isSpent(why),
		Text: "no verdict: " + text.CutBytes(text.OneLine(why.Error()), 200)})
}

// emitOf writes an event about the task.
func emitOf(ctx context.Context, a *attempt, kind string, fields map[string]any) error {
	return a.journal.Emit(ctx, muster.Event{Kind: kind, Member: a.v.Task.Owner, Task: a.v.Task.ID, Fields: fields})
}

// A budget is the user's, and no fault of the work: a task that comes back because of it is not nearer to its end.

// isSpent reports whether an agent could not be asked because a budget is used up.
func isSpent(err error) bool {
	_, is := spend.IsExceeded(err)
	return is
}
