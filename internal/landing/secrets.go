package landing

import (
	"context"
	"slices"

	"muster/internal/git"
	"muster/internal/secrets"
)

// summaryName stands for the path of the task's summary, which lands in the message of the commit.
const summaryName = "(summary)"

// holdsSecrets is the gate for work that would bring to the target what looks like a key, unless the user has allowed
// that. Asked once for each head of the lane: what it adds does not depend on where the target is.
//
// Invariant: what reaches the target was looked at. That is the merged tree and the summary, and with merge commits
// each commit of the lane too.
func (l *landing) holdsSecrets(ctx context.Context, tip string) (back comeback, err error) {
	if l.options.LandSecrets || l.scanned == l.head {
		return back, nil
	}
	changed, err := treeChanges(ctx, l.repo, tip, l.merged.tree)
	if err == nil && l.options.MergeCommits {
		var history []fileChange
		history, err = historyChanges(ctx, l.repo, tip, l.head)
		changed = append(changed, history...)
	}
	if err != nil {
		return back, err
	}
	changes, err := readChanges(ctx, l.repo, changed)
	if err != nil {
		return back, err
	}
	changes = append(changes, secrets.Change{Path: summaryName, New: []byte(l.summary)})
	var held []secrets.Finding
	for _, f := range secrets.Scan(changes) {
		isAllowed := false
		// Asked for each finding anew, so that what the user allows counts at the next landing of a run.
		if l.options.IsAllowed != nil {
			if isAllowed, err = l.options.IsAllowed(f.Fingerprint); err != nil {
				return back, err
			}
		}
		if !isAllowed {
			held = append(held, f)
		}
	}
	if len(held) == 0 {
		l.scanned = l.head
		return back, nil
	}
	return secretsHeld(l.options.branch(), held, l.options.MergeCommits), nil
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
