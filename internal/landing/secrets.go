package landing

import (
	"context"
	"slices"

	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/secrets"
)

// summaryName stands for the path of the task's summary, which lands in the message of the commit.
const summaryName = "(summary)"

// returnSecrets returns the task when its work would bring to the target what looks like a key, unless the user has
// allowed that. Asked once for each head of the lane: what it adds does not depend on where the target is.
//
// Invariant: what reaches the target was looked at. That is the merged tree and the summary, and with merge commits
// each commit of the lane too.
func returnSecrets(ctx context.Context, a *attempt, tip string) (isReturned bool, err error) {
	if a.options.LandSecrets || a.scanned == a.head {
		return false, nil
	}
	changed, err := treeChanges(ctx, a.repo, tip, a.merged.tree)
	if err == nil && a.options.MergeCommits {
		var history []fileChange
		history, err = historyChanges(ctx, a.repo, tip, a.head)
		changed = append(changed, history...)
	}
	if err != nil {
		return false, err
	}
	changes, err := readChanges(ctx, a.repo, changed)
	if err != nil {
		return false, err
	}
	changes = append(changes, secrets.Change{Path: summaryName, New: []byte(a.summary)})
	var held []secrets.Finding
	for _, f := range secrets.Scan(changes) {
		isAllowed := false
		// Asked for each finding anew, so that what the user allows counts at the next landing of a run.
		if a.options.IsAllowed != nil {
			if isAllowed, err = a.options.IsAllowed(f.Fingerprint); err != nil {
				return false, err
			}
		}
		if !isAllowed {
			held = append(held, f)
		}
	}
	if len(held) == 0 {
		a.scanned = a.head
		return false, nil
	}
	return true, a.returnTask(ctx, "secret", secretText(a.branch(), held, a.options.MergeCommits),
		board.Details{Text: secretLine(held)})
}

// readChanges reads the contents of changed files. One that is too large is left out, and so are those that follow when
// all together are too large.
func readChanges(ctx context.Context, repo *git.Repo, changed []fileChange) ([]secrets.Change, error) {
	// Two commits may have one content, which is read once.
	var ids []string
	for _, c := range changed {
		ids = append(append(ids, c.New), c.Old...)
	}
	slices.Sort(ids)
	// Old and new contents may each have as much as is looked at.
	blobs, err := git.Blobs(ctx, repo, slices.Compact(ids), secrets.MaxFile, 2*secrets.MaxAll)
	if err != nil {
		return nil, unavailable(ctx, "the changed files cannot be read", err)
	}
	var all []secrets.Change
	for _, c := range changed {
		change := secrets.Change{Path: c.Path, New: blobs[c.New]}
		for _, id := range c.Old {
			change.Old = append(change.Old, blobs[id])
		}
		all = append(all, change)
	}
	return all, nil
}
