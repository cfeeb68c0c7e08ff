package team

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/text"
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
	// Checks is what each of several checks has said, instead of Kept.
	Checks []CheckReceipt `json:"receipts,omitempty"`
}

// CheckReceipt is what a check has said of a tree.
type CheckReceipt = check.Receipt

func (o operations) receipts(ctx context.Context) ([]Receipt, error) {
	w := o.workspace
	run, err := o.lastRun(ctx, "nothing has landed")
	if err != nil {
		return nil, err
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
	kept := &keptReceipts{repo: repo, all: check.Receipts(w.Paths().Receipts()), hashes: map[string]string{}}
	var all []Receipt
	for _, task := range tasks {
		if task.Landed == nil {
			continue
		}
		x, err := kept.verify(ctx, task, commits, run.Target)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
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

// A receipt names the patterns of the files that its check guards, so a commit can be verified long after the settings
// have changed: the files of its tree are hashed with the patterns of each receipt in question.

// keptReceipts are the receipts on record.
type keptReceipts struct {
	repo   *git.Repo
	all    []check.Receipt
	hashes map[string]string // of the files of a tree that match some patterns, by both
}

func (k *keptReceipts) of(ctx context.Context, tree string) (found []check.Receipt, err error) {
	for _, x := range k.all {
		isOf := x.Tree == tree && x.Files == ""
		if x.Files != "" {
			key := tree + "\n" + strings.Join(x.Paths, "\n")
			if k.hashes[key] == "" {
				if k.hashes[key], err = check.HashFiles(ctx, k.repo, tree, x.Paths); err != nil {
					return nil, err
				}
			}
			isOf = k.hashes[key] == x.Files
		}
		if isOf {
			found = append(found, x)
		}
	}
	return found, nil
}

// verify compares one task with its commit and with the receipts of its tree. The first thing that is wrong is what is
// said, because the others follow from it. Of several receipts for the tree, as after a change of the environment, any
// that bears the record out is enough.
func (k *keptReceipts) verify(
	ctx context.Context, t muster.Task, commits targetHistory, target string,
) (x Receipt, err error) {
	x = Receipt{Task: t.ID, Subject: t.Subject, Commit: t.Landed.Commit, Says: t.Landed.Receipt,
		CoveredBy: t.Landed.CoveredBy}
	at := commits.place(t.Landed.Commit)
	if at == len(commits) {
		x.Problem = "its commit is not on " + target
		return x, nil
	}
	x.Tree = commits[at].tree
	task, said, ok := landing.Trailers(commits[at].message)
	switch {
	case !ok || task != t.ID:
		x.Problem = "its commit does not name the task"
	case said.Receipt != x.Says:
		x.Problem = fmt.Sprintf("its commit says %q", said.Receipt)
	}
	found, err := k.of(ctx, x.Tree)
	if err != nil {
		return x, err
	}
	isGreen := x.Says == muster.ReceiptGreen
	for _, r := range found {
		isCheck := t.Landed.Check == "" || r.Name == "" && text.OneLine(r.Command) == said.Check
		if isCheck && r.Proves(isGreen) {
			x.Kept = &r
			break
		}
	}
	missing := "no check of its tree that says so is on record"
	if x.Kept == nil && slices.ContainsFunc(found, func(k check.Receipt) bool { return k.Name != "" }) {
		x.Checks, missing = ofEach(strings.Split(said.Check, ", "), found, isGreen)
	}
	hasToBeKept := isGreen || x.Says == muster.ReceiptStillRed
	if x.Problem == "" && hasToBeKept && x.Kept == nil {
		x.Problem = missing
	}
	return x, nil
}

// ofEach returns a receipt for each of several checks of a tree, and what is missing for them to bear the record out:
// all must be green, or at least one red.
func ofEach(names []string, found []check.Receipt, isGreen bool) (all []CheckReceipt, missing string) {
	hasRed := false
	for _, name := range names {
		own := slices.DeleteFunc(slices.Clone(found), func(k check.Receipt) bool { return k.Name != name })
		at := slices.IndexFunc(own, func(k check.Receipt) bool { return k.Proves(isGreen) })
		if len(own) == 0 || isGreen && at < 0 {
			missing = cmp.Or(missing, fmt.Sprintf("no check %s of its tree that says so is on record", name))
			continue
		}
		hasRed = hasRed || at >= 0 && !isGreen
		all = append(all, own[max(at, 0)])
	}
	if !isGreen && !hasRed {
		missing = cmp.Or(missing, "no check of its tree that says so is on record")
	}
	return all, missing
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
