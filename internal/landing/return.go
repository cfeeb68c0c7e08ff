package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
)

// mergeInLane merges the target into the lane after the merge of the trees has conflicted. A merge in a worktree obeys
// attributes that a merge of trees does not: where it needs nobody, the error is errMoved, and the landing goes on.
// Else the task is returned.
func (a *attempt) mergeInLane(ctx context.Context, tip string) error {
	files, err := a.mergeTarget(ctx, tip)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return a.returnConflict(ctx, tip, files)
	}
	return cmp.Or(a.begin(ctx, tip), errMoved)
}

// mergeTarget merges the target's tip into the lane, and commits the merge unless files conflict.
func (a *attempt) mergeTarget(ctx context.Context, tip string) (conflicts []string, err error) {
	conflicts, err = a.lanes.Merge(ctx, a.v.Task.Worktree, tip)
	if err != nil || len(conflicts) > 0 {
		return conflicts, err
	}
	a.head, _, err = a.lanes.Commit(ctx, a.v.Task.Worktree, "Merge "+a.branch()+" into the lane\n")
	return nil, err
}

// explainUnmergeable finds out why git could not merge at all. A task whose history has no commit in common with the
// target is returned: somebody has moved the lane's branch, or the target.
func (a *attempt) explainUnmergeable(ctx context.Context, tip string, cause error) error {
	related, err := a.repo.Related(ctx, tip, a.head)
	if err != nil || related {
		return unavailable(ctx, "the work cannot be merged", cause)
	}
	// A lane that still contains its base was not moved, so it was the target.
	text := targetMovedText(a.branch())
	if onBase, err := a.repo.IsAncestor(ctx, a.v.Task.Base, a.head); err == nil && !onBase {
		text = laneMovedText(a.branch(), a.v.Task.Base)
	}
	return a.returnTask(ctx, "conflict", text,
		board.Details{Text: "everything: it has no common history with " + a.branch()})
}

// returnConflict returns the task to its owner, whose lane holds the conflicts.
func (a *attempt) returnConflict(ctx context.Context, tip string, files []string) error {
	met, err := a.explain(ctx, a.head, tip, files)
	if err != nil {
		return err
	}
	d := board.Details{Text: fileList(files), With: met.with, Met: met.met, Moved: true}
	if d.Sides, err = a.bothSides(ctx, tip, d); err != nil {
		return err
	}
	return a.returnTask(ctx, "conflict", conflictText(a.branch(), files)+met.text, d)
}

// returnRed returns the task to its owner with the log. What the target has beyond the lane is merged into the lane
// first: the check failed on both together, and the owner must be able to see it fail.
func (a *attempt) returnRed(ctx context.Context, tip string, res CheckResult) error {
	isUpToDate, err := a.repo.IsAncestor(ctx, tip, a.head)
	if err != nil {
		return err
	}
	met := collision{}
	if !isUpToDate {
		if met, err = a.explain(ctx, a.head, tip, nil); err != nil {
			return err
		}
		// The owner resolves a conflict here, as at the next landing.
		if _, err := a.mergeTarget(ctx, tip); err != nil {
			return err
		}
	}
	d := board.Details{Text: lastLines(res.Output, 20), Failed: res.Failed, Log: res.Log, Seconds: res.Seconds,
		With: met.with, Met: met.met,
		// The first red check on a target that the lane did not have may be the fault of both sides.
		Moved: !isUpToDate && a.v.Task.Rounds == 0}
	if d.Sides, err = a.bothSides(ctx, tip, d); err != nil {
		return err
	}
	return a.returnTask(ctx, "check", redText(a.branch(), res, met.text, !isUpToDate), d)
}

// returnTask ends the landing and returns the task. The landing ref goes before the board is told: once the task is its
// owner's again, nothing of this attempt may land any more.
func (a *attempt) returnTask(ctx context.Context, why, text string, d board.Details) error {
	if err := a.cancel(ctx); err != nil {
		return err
	}
	failpoint.Hit("landing.withdrawn")
	late, cancel := clock.Detach(ctx)
	defer cancel()
	// The return is written even when ctx has just ended: the owner has conflicts or a merge in the lane by now and
	// must be told why.
	t, err := a.board.Return(late, a.v.Task.ID, a.claim, why, d)
	failpoint.Hit("landing.returned")
	if errors.Is(err, muster.ErrFenced) {
		return a.refuse(ctx)
	}
	a.setTask(t)
	if a.v.Task.Status == muster.NeedsAttention {
		text = stuckText(t, text)
	}
	a.v.Text = text
	return err
}

// cancel deletes the landing ref. The error is Fenced when the claim was revoked.
func (a *attempt) cancel(ctx context.Context) error {
	isRevoked, err := a.refs.remove(ctx)
	if err == nil && isRevoked {
		return a.refuse(ctx)
	}
	return err
}

// The texts below are what the owner's model reads: what happened, then what to do.

// stuckText is for an owner whose task came back for the last time. Of the text for one that goes on it has the first
// line only, which says what happened: the rest says what to do, and there is nothing to do any more.
func stuckText(t muster.Task, text string) string {
	what, _, _ := strings.Cut(text, "\n")
	return fmt.Sprintf("%s\nThis was the last of %d times in a row: the task needs attention now and is no longer "+
		"yours. Its lane is kept as it is for whoever goes on with it, and the lead was told: leave it, and do not "+
		"call complete_task for it.", what, t.Rounds)
}

// conflictText is for an owner whose work does not merge.
func conflictText(branch string, files []string) string {
	return fmt.Sprintf("Your work conflicts with what has landed on %s meanwhile, in %s.\n"+
		"%s was merged into your lane, and the conflicts are marked there: yours, after ||||||| what both started "+
		"from, after ======= what has landed. Resolve them: keep what both sides meant and leave no marker line. "+
		"Where a file has no markers (it is binary, or one side deleted it), make it what it should be, then git "+
		"add it or git rm it. Do not commit the merge: call complete_task again, and the runtime commits.\n",
		branch, fileList(files), branch)
}

// laneMovedText is for an owner whose lane's branch was moved to another history.
func laneMovedText(branch, base string) string {
	return fmt.Sprintf("Your lane's branch was moved to a history that has no commit in common with %s, so nothing "+
		"of it can be merged.\nIn your lane, run: git reset --soft %s\n"+
		"It leaves all files as they are. Look at git status, then call complete_task again.", branch, base)
}

// targetMovedText is for an owner whose target was moved to another history.
func targetMovedText(branch string) string {
	return fmt.Sprintf("Somebody has moved %s to a history that has no commit in common with your lane, so your work "+
		"cannot be merged into it.\nYou cannot mend that in your lane: tell the lead, who can ask for %s to be moved "+
		"back, then call complete_task again, or release the task.", branch, branch)
}

// displacedText is for an owner in whose phase the target was displaced.
func displacedText(d *Displaced, branch string) string {
	return fmt.Sprintf("%s.\nOnly landings move %s: work in your lane, on its own branch, and let complete_task land "+
		"it. Your lane is as it was. Look at git status and git log there, then call complete_task again.",
		d.Error(), branch)
}

// isEmptyTree reports whether a tree, of either kind of repository, has no file.
func isEmptyTree(tree string) bool {
	return tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904" ||
		tree == "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}

// emptyText is for an owner whose lane has lost all its files.
func emptyText(branch string) string {
	return fmt.Sprintf("Your work would delete every file of %s: your lane is empty.\nIf a command has removed the "+
		"files by mistake, run in your lane: git checkout HEAD~ -- .\nThen call complete_task again. A task that is "+
		"to remove everything has to leave one file.", branch)
}

// maxFiles is how many files fileList names.
const maxFiles = 20

// fileList names the files in one line.
func fileList(files []string) string {
	if more := len(files) - maxFiles; more > 0 {
		return fmt.Sprintf("%s and %d more files", strings.Join(files[:maxFiles], ", "), more)
	}
	return strings.Join(files, ", ")
}

// redText is for an owner on whose work the check failed, or could not run.
func redText(branch string, res CheckResult, landed string, merged bool) string {
	var b strings.Builder
	what := "The check failed"
	if res.CannotRun {
		what = "The check could not run"
	}
	if res.Refused {
		fmt.Fprintf(&b, "A hook of the user refused your work merged with %s.\n", branch)
	} else {
		fmt.Fprintf(&b, "%s on your work merged with %s: %s (%s, %.1f s).\n",
			what, branch, res.Command, res.How, res.Seconds)
	}
	b.WriteString(addedText(branch, res))
	if merged {
		fmt.Fprintf(&b, "What has landed on %s meanwhile is now merged into your lane, so that you can see it fail "+
			"there.\n", branch)
	}
	fmt.Fprintf(&b, "Mend it in your lane, run the check there, then call complete_task again. Its log: %s\n", res.Log)
	b.WriteString(landed)
	b.WriteString(res.Output)
	return b.String()
}

// lastLines returns the last n lines.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
