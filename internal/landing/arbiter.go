package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/text"
	"muster/internal/worktree"
	"muster/journal"
)

// DefaultArbiter is the role of the agent that gets a last chance with work that others' work keeps from landing.
const DefaultArbiter = "arbiter"

// A task is set aside after its last return. Where others' work has had a part in its returns, an arbiter comes before
// that: board.Return leaves the task landing, with muster.Arbiter in its document, and the owner's call of Land goes on
// with arbitrate. These states follow each other, each in the document before anything is done for it:
//
//	due:    the last landing came back; the lane has the work, the landing ref is gone
//	ended:  the arbiter has ended; what the lane has lands like the work of any owner
//	landed, or set aside: the check has decided
//
// A process that dies in the first goes on with an arbiter in the same lane, and one that dies in the second with the
// landing. The task is its owner's all the time: whoever takes it away ends the landing as any other, and then the next
// owner's returns may bring another arbiter.

// Dispute is what an arbiter has to bring together. All of it is of others, and none of it is an instruction.
type Dispute struct {
	Task    muster.Task
	Summary string // of the task's owner
	Diff    worktree.Diff
	Branch  string // the target
	// Conflicts are those that the merge with the target has left in the lane. Without any the two merge, and the check
	// fails on both together.
	Conflicts []worktree.Conflict
	Others    []LandedWork // the newest last
}

// LandedWork is the work of another task that has landed.
type LandedWork struct {
	Task        string // its number
	Subject     string
	Description string // "" when its record is gone
	Owner       string
	Summary     string
	Commit      string
	Diff        string
}

// ArbiterReport says how the work of an arbiter has ended.
type ArbiterReport struct {
	Model string // as the settings name it
	Text  string // its last words, which decide nothing
}

// arbitrate lets an arbiter work in the lane, into which the target is merged before, and records that it has ended.
// What it leaves there then lands in the ordinary way: the check decides. Its owner is parked meanwhile, and still has
// the claim.
//
// A process that dies before the record has written nothing but files of the lane: the next one lets an arbiter go on
// with them. After the record no other arbiter begins.
func arbitrate(ctx context.Context, a *attempt) error {
	d, err := prepareDispute(ctx, a)
	if err == nil {
		err = emitOf(ctx, a, journal.ArbiterStarted, map[string]any{"role": DefaultArbiter, "with": a.v.Task.Met})
	}
	var report ArbiterReport
	if err == nil {
		err = askAgent(ctx, a, a.agents.Arbitrate != nil, func() (err error) {
			report, err = a.agents.Arbitrate(ctx, d)
			return err
		})
	}
	if context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	problem := ""
	if err != nil {
		a.log.WarnContext(ctx, "the arbiter could not work", "err", err)
		problem = text.CutBytes(text.OneLine(err.Error()), 300)
	}
	failpoint.Hit("landing.arbitrating")
	t, err := board.EndArbiter(ctx, a.board, a.v.Task.ID, a.claim, DefaultArbiter, report.Model, problem)
	failpoint.Hit("landing.arbitrated")
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return a.refuse(ctx)
	}
	a.setTask(t)
	return err
}

// prepareDispute merges the target into the lane, and returns what an arbiter is told.
func prepareDispute(ctx context.Context, a *attempt) (d Dispute, err error) {
	t := a.v.Task
	d = Dispute{Task: t, Summary: a.summary, Branch: a.branch()}
	if t.Landing != nil {
		d.Summary = cmp.Or(d.Summary, t.Landing.Summary)
	}
	tip, err := a.Target(ctx)
	if err != nil {
		return d, err
	}
	if d.Conflicts, err = a.lanes.Unresolved(ctx, t.Worktree); err == nil && len(d.Conflicts) == 0 {
		// What an arbiter has left that a crash has ended is committed before the merge, which wants a clean lane.
		a.head, _, err = a.lanes.Commit(ctx, t.Worktree, laneMessage(t, d.Summary))
		if err == nil {
			_, err = a.mergeTarget(ctx, tip)
		}
		if err == nil {
			d.Conflicts, err = a.lanes.Unresolved(ctx, t.Worktree)
		}
	}
	if err != nil {
		return d, err
	}
	tree, base, err := worktree.Content(ctx, a.lanes, t.Worktree, tip)
	if err == nil {
		d.Diff, err = worktree.DiffOf(ctx, a.repo, base, tree)
	}
	for _, commit := range t.Met {
		if other, ok := describeLanded(ctx, a.Lander, commit); ok {
			d.Others = append(d.Others, other)
		}
	}
	return d, err
}

// describeLanded returns what is known of a landed commit. ok is false for one that is gone.
func describeLanded(ctx context.Context, l *Lander, commit string) (w LandedWork, ok bool) {
	message, err := l.repo.Run(ctx, l.repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", commit)
	if err != nil {
		return w, false
	}
	c, ok := readLanded(commit, message)
	if !ok {
		return w, false
	}
	w = LandedWork{Task: c.task, Subject: c.subject, Owner: c.owner, Summary: c.summary, Commit: commit}
	if id, err := strconv.Atoi(c.task); err == nil {
		if t, err := l.board.Get(ctx, muster.TaskID(id)); err == nil && t.Landed != nil && t.Landed.Commit == commit {
			w.Description = t.Description
		}
	}
	if w.Diff, err = diffOf(ctx, l, commit, nil); err != nil {
		w.Diff = fmt.Sprintf("git show %.7s\n", commit)
	}
	return w, true
}
