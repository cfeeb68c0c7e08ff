package landing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/text"
	"muster/internal/treediff"
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

// findApproval finds out whether the work, as it is now, was approved before: by this process or by one that has died.
func (l *landing) findApproval(ctx context.Context, tip string) (err error) {
	// What takes landed work back needs no review: the user has asked for it.
	l.needsReview = (l.options.Review != "" || l.task.Review) && len(l.task.Undoes) == 0
	if !l.needsReview {
		return nil
	}
	was := l.reviewed.Key
	if l.reviewed, err = l.reviewedWork(ctx, tip); err != nil {
		return err
	}
	if l.approval != "" && was == l.reviewed.Key {
		return nil
	}
	l.approval = ""
	if x, ok := readApproval(l.options.Receipts, l.reviewed); ok {
		l.approval = x.String()
	}
	return nil
}

// review has the work reviewed. The error is errMoved when it was approved: then it queues again. Work without a
// verdict is returned, too, and never lands.
func (l *landing) review(ctx context.Context, checked muster.Landed) error {
	role := l.reviewed.Role
	diff, err := treediff.DiffOf(ctx, l.repo, l.reviewed.base, l.head)
	if err == nil {
		err = l.emit(ctx, journal.ReviewStarted, map[string]any{"role": role})
	}
	if err != nil {
		return err
	}
	line := func(ctx context.Context, file string, line int) (string, error) {
		return treediff.LineOf(ctx, l.repo, l.head, file, line)
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
		"comments": len(v.Comments), "text": v.Text, "result": "returned"}
	switch {
	case err != nil:
		said["result"], said["text"] = "none", err.Error()
	case v.Approved:
		said["result"] = "approved"
		x := l.reviewed
		x.Model, x.At, x.Comments, x.Text = v.Model, time.Now().UTC(), v.Comments, v.Text
		// Before anybody is told: an approval that a crash loses would be paid twice.
		if err := x.keep(l.options.Receipts); err != nil {
			return err
		}
		l.approval = x.String()
		failpoint.Hit("landing.reviewed")
	}
	l.log.InfoContext(ctx, "landing reviewed", "role", role, "result", said["result"], "model", v.Model)
	if emitErr := l.emit(ctx, journal.ReviewEnded, said); emitErr != nil {
		return emitErr
	}
	switch {
	case err == nil && v.Approved:
		return errMoved
	case err == nil:
		return l.comeBack(ctx, rejected(ctx, role, v, line))
	case l.options.TellLead != nil:
		// The return counts, so that the task is set aside in the end, and the lead is told at once.
		note := fmt.Sprintf("Task #%d could not land: the %s has given no verdict on it: %v. "+
			"Work without a review does not land. Its owner can try again (complete_task).", l.task.ID, role, err)
		if tellErr := l.options.TellLead(ctx, note); tellErr != nil {
			return tellErr
		}
	}
	return l.comeBack(ctx, unreviewed(role, err))
}

var errNobody = errors.New("this process has no agent for it")

func (l *landing) emit(ctx context.Context, kind string, fields map[string]any) error {
	return l.journal.Emit(ctx, muster.Event{Kind: kind, Member: l.task.Owner, Task: l.task.ID, Fields: fields})
}

// approval says that a role has approved the work of a task. It is kept beside the receipts of checks, so that neither
// a crash nor a target that moves makes anybody review the same work twice.
type approval struct {
	Key      string          `json:"key"` // of the task, the role and the difference: another needs its own
	Task     muster.TaskID   `json:"task"`
	Role     string          `json:"role"`
	Model    string          `json:"model"`
	Head     string          `json:"head"` // the lane's commit that was reviewed
	At       time.Time       `json:"at"`
	Comments []ReviewComment `json:"comments,omitempty"`
	Text     string          `json:"text,omitempty"`

	base string // where the lane left the target
}

// String says it as the trailer of the landed commit does.
func (x *approval) String() string {
	return text.OneLine(fmt.Sprintf("approved by %s (%s)", x.Role, x.Model))
}

// reviewedWork returns what an approval of the work would be of. The key has the files that are changed, as
// they were and as they are, and not the ids of commits: work into which more of the target was merged is the same
// work, as long as that touches none of its files.
func (l *landing) reviewedWork(ctx context.Context, tip string) (x approval, err error) {
	x = approval{Task: l.task.ID, Role: cmp.Or(l.options.Review, DefaultReviewer), Head: l.head}
	if x.base, err = l.leftAt(ctx, l.repo, tip); err != nil {
		return x, err
	}
	changed, err := l.repo.Do(ctx, git.Call{Dir: l.repo.CommonDir(), Bare: true,
		Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", x.base, l.head, "--"}})
	if err != nil {
		return x, unavailable(ctx, "git cannot compare the lane with the target", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n%s", x.Task, muster.RoleKey(x.Role), changed)
	x.Key = hex.EncodeToString(sum.Sum(nil)[:16])
	return x, nil
}

func (x *approval) path(receipts string) string {
	return filepath.Join(receipts, "reviews", x.Key+".json")
}

// keep writes the approval. Without a directory it holds for the landing that is under way.
func (x *approval) keep(receipts string) error {
	if receipts == "" {
		return nil
	}
	data, err := json.MarshalIndent(x, "", "  ")
	if err == nil {
		err = durable.New(durable.OS{}).Replace(x.path(receipts), append(data, '\n'))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the review cannot be recorded: %w", err)
	}
	return nil
}

// maxApproval is how large the file of an approval may be.
const maxApproval = 1 << 20

// readApproval returns the approval of the work, if there is one. One that cannot be read approves nothing, and the
// work is reviewed again.
func readApproval(receipts string, of approval) (x approval, ok bool) {
	if receipts == "" {
		return x, false
	}
	data, err := durable.ReadRegular(of.path(receipts), maxApproval)
	if err != nil || json.Unmarshal(data, &x) != nil || x.Key != of.Key || x.Task != of.Task || x.Role == "" {
		return approval{}, false
	}
	return x, true
}
