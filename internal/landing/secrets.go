package landing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/secrets"
	"muster/internal/text"
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

// secretLine says in a line what is held back, and how the user allows the first of it.
func secretLine(held []secrets.Finding) string {
	more := ""
	if len(held) > 1 {
		more = fmt.Sprintf(" and %d more", len(held)-1)
	}
	return fmt.Sprintf("%s%s (muster allow secret %s)", placeOf(held[0]), more, held[0].Fingerprint)
}

// placeOf says where something was found, and what it looks like. It never says what was found.
func placeOf(f secrets.Finding) string {
	return fmt.Sprintf("%s:%d %s", text.OneLine(f.File), f.Line, f.Rule)
}

// secretText is for an owner whose work has what looks like keys.
func secretText(branch string, held []secrets.Finding, landsHistory bool) string {
	var b strings.Builder
	b.WriteString("Your work holds what looks like a secret, so it does not land. File, line and rule:\n")
	var ids []string
	for i, f := range held {
		if i == maxFiles {
			fmt.Fprintf(&b, "  and %d more\n", len(held)-i)
			break
		}
		ids = append(ids, f.Fingerprint)
		fmt.Fprintf(&b, "  %s (%s)\n", placeOf(f), f.Fingerprint)
	}
	b.WriteString("Take each out of your files, and let the program read it from its environment or from a file that " +
		"git ignores. Comments that switch scanners off do not count here.\n")
	if landsHistory {
		fmt.Fprintf(&b, "It must go from ALL commits of your lane, because its history lands too: when your files are "+
			"clean, run: git reset --soft $(git merge-base HEAD %s)\n", branch)
	}
	b.WriteString("Then call complete_task again. If one is a real key, tell the lead that it has to be replaced: " +
		"others may have read it here. If one is no secret, such as made-up data of a test, make it recognisable as " +
		"such (EXAMPLE in it), or tell the lead. Only the user can allow it, in a shell of their own: " +
		"muster allow secret " + strings.Join(ids, " ") + "\n")
	return b.String()
}
