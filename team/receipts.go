package team

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/landing"
)

// Receipt is what proves the commit of one landed task.
type Receipt struct {
	Task    muster.TaskID `json:"task"`
	Subject string        `json:"subject"`
	Commit  string        `json:"commit"`
	Tree    string        `json:"tree,omitempty"`
	Says    string        `json:"says"` // by the task's record: "ok", "covered", "still red", "not verified"
	// Problem is why git and the records do not bear that out; "": they do.
	Problem string `json:"problem,omitempty"`
	// Kept is what the check has said of the tree; nil: nothing is kept.
	Kept *CheckReceipt `json:"receipt,omitempty"`
	// CoveredBy is the task whose check covers this one too; 0: it has one of its own.
	CoveredBy muster.TaskID `json:"covered_by,omitempty"`
}

// CheckReceipt is what a check has said of a tree.
type CheckReceipt = check.Receipt

// ReceiptsOf compares what the board says of the landed tasks with the target's commits and with what checks have said
// of their trees. They are in the order in which they landed, and those that are not on the target come last. It
// changes nothing.
//
// The record of a task says which commit it landed with, and what the check has said. Both may have been written by
// somebody else, so nothing is believed that the other two do not bear out:
//
//   - The commit is one of the target's first parents, and its trailer names the task and says the same.
//   - A check of the very tree of that commit is on record, by the same command, and says the same.
//   - For a commit that a later check covers, that holds of the next landing above it.
func ReceiptsOf(ctx context.Context, t *Team) ([]Receipt, error) {
	w := t.services()
	run, err := w.Runs().Look(ctx)
	if err != nil {
		return nil, err
	}
	if run.Target == "" {
		return nil, muster.Errorf(muster.NotFound, "there was no run here, so nothing has landed").
			WithHint(`start one: muster run "GOAL"`)
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	commits, err := targetCommits(ctx, repo, run.Target)
	if err != nil {
		return nil, err
	}
	tasks, err := w.Board().List(ctx)
	if err != nil {
		return nil, err
	}
	kept := map[string][]check.Receipt{}
	for _, x := range check.Receipts(w.Paths().Receipts()) {
		kept[x.Tree] = append(kept[x.Tree], x)
	}
	var all []Receipt
	for _, task := range tasks {
		if task.Landed != nil {
			all = append(all, verify(task, commits, kept, run.Target))
		}
	}
	slices.SortStableFunc(all, func(a, b Receipt) int { return commits.place(a.Commit) - commits.place(b.Commit) })
	verifyCovered(all)
	return all, nil
}

// landedCommit is one commit of the target.
type landedCommit struct{ id, tree, message string }

// targetHistory has the commits of the target, the oldest first.
type targetHistory []landedCommit

// place returns where a commit is, and a place after all of them for one that is not there.
func (h targetHistory) place(id string) int {
	if i := slices.IndexFunc(h, func(c landedCommit) bool { return c.id == id }); i >= 0 {
		return i
	}
	return len(h)
}

// targetCommits reads the first parents of the target, along which landings go.
func targetCommits(ctx context.Context, repo *git.Repo, target string) (all targetHistory, err error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "log", "-z", "--reverse", "--first-parent", "--format=%H %T%n%B",
		"--end-of-options", "refs/heads/"+target)
	if err != nil {
		return nil, muster.Errorf(muster.NotFound, "the commits of %s cannot be read: %w", target, err)
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		ids, message, _ := strings.Cut(entry, "\n")
		if id, tree, ok := strings.Cut(ids, " "); ok {
			all = append(all, landedCommit{id, tree, message})
		}
	}
	return all, nil
}

// verify compares one task with its commit and with the receipts of its tree. The first thing that is wrong is what is
// said, because the others follow from it. Of several receipts for the tree, as after a change of the environment, any
// that bears the record out is enough.
func verify(t muster.Task, commits targetHistory, kept map[string][]check.Receipt, target string) Receipt {
	x := Receipt{Task: t.ID, Subject: t.Subject, Commit: t.Landed.Commit, Says: t.Landed.Receipt,
		CoveredBy: t.Landed.CoveredBy}
	at := commits.place(t.Landed.Commit)
	if at == len(commits) {
		x.Problem = "its commit is not on " + target
		return x
	}
	x.Tree = commits[at].tree
	task, said, ok := landing.Trailers(commits[at].message)
	switch {
	case !ok || task != t.ID:
		x.Problem = "its commit does not name the task"
	case said.Receipt != x.Says:
		x.Problem = fmt.Sprintf("its commit says %q", said.Receipt)
	}
	for _, k := range kept[x.Tree] {
		isCheck := t.Landed.Check == "" || strings.Join(strings.Fields(k.Command), " ") == said.Check
		if isCheck && k.Proves(x.Says == muster.ReceiptGreen) {
			x.Kept = &k
			break
		}
	}
	hasToBeKept := x.Says == muster.ReceiptGreen || x.Says == muster.ReceiptStillRed
	if x.Problem == "" && hasToBeKept && x.Kept == nil {
		x.Problem = "no check of its tree that says so is on record"
	}
	return x
}

// verifyCovered looks whether the next landing that was checked itself proves those before it. all is in the order of
// the landings, so whatever lies between a covered commit and the next one that was checked is covered by that too. A
// commit that landed unchecked between the two ends the proof: nobody has looked at what it brought.
func verifyCovered(all []Receipt) {
	proven := false
	for i := len(all) - 1; i >= 0; i-- {
		x := &all[i]
		if x.Says != muster.ReceiptCovered {
			proven = x.Says == muster.ReceiptGreen && x.Problem == ""
		} else if x.Problem == "" && !proven {
			x.Problem = "no later landing proves it"
		}
	}
}
