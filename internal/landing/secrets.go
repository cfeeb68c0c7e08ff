package landing

import (
	"context"
	"slices"
	"strings"

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
	held, err := l.options.heldSecrets(changes)
	if err != nil {
		return back, err
	}
	if len(held) == 0 {
		l.scanned = l.head
		return back, nil
	}
	return secretsHeld(l.options.branch(), held, l.options.MergeCommits), nil
}

// heldSecrets returns what the changes add that looks like a key and that the user has not allowed.
func (o *Options) heldSecrets(changes []secrets.Change) (held []secrets.Finding, err error) {
	for _, f := range secrets.Scan(changes) {
		isAllowed := false
		// Asked for each finding anew, so that what the user allows counts at the next landing of a run.
		if o.IsAllowed != nil {
			if isAllowed, err = o.IsAllowed(f.Fingerprint); err != nil {
				return nil, err
			}
		}
		if !isAllowed {
			held = append(held, f)
		}
	}
	return held, nil
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

// fileChange is a file that a commit or a tree has changed, by the ids of its contents.
type fileChange struct {
	Path string
	// Old are the contents from which it was made: none of a new file, one of each parent for a merge.
	Old []string
	New string
}

// treeChanges returns the files of a tree that are not those of another one, or of a commit. Files that are gone and
// submodules are left out. A file that was moved has the content that it had in its old place. No attribute of the
// repository changes the result, as it changes what git shows as a difference.
func treeChanges(ctx context.Context, r *git.Repo, from, to string) ([]fileChange, error) {
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true, Args: []string{"diff-tree", "-r", "-z", "-M",
		"--raw", "--no-abbrev", "--end-of-options", from, to}})
	return parseRaw(out), err
}

// historyChanges returns what each commit has changed that is in head's history and not in base's. A merge has changed
// what is in none of its parents.
func historyChanges(ctx context.Context, r *git.Repo, base, head string) ([]fileChange, error) {
	commits, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true,
		Args: []string{"rev-list", "--end-of-options", head, "^" + base}})
	if err != nil || commits == "" {
		return nil, err
	}
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true, Stdin: commits, Args: []string{"diff-tree",
		"--stdin", "-r", "-z", "-M", "-c", "--root", "--raw", "--no-abbrev", "--no-commit-id"}})
	return parseRaw(out), err
}

// parseRaw reads git's raw form: a colon for each parent, the modes and the ids of the parents and of the result, and
// the status, then the path, or two where the file was moved.
func parseRaw(out string) (all []fileChange) {
	fields := git.SplitNUL(out)
	for i := 0; i+1 < len(fields); i++ {
		head := strings.TrimLeft(fields[i], ":")
		parents := len(fields[i]) - len(head)
		f := strings.Fields(head)
		if parents == 0 || len(f) != 2*parents+3 {
			continue
		}
		status := f[2*parents+2]
		// Of a merge git names one path only, whatever was moved.
		i++
		if parents == 1 && strings.ContainsAny(status, "RC") && i+1 < len(fields) {
			i++
		}
		c := fileChange{Path: fields[i], New: f[2*parents+1]}
		for p, id := range f[parents+1 : 2*parents+1] {
			if strings.Trim(id, "0") != "" && f[p] != submodule {
				c.Old = append(c.Old, id)
			}
		}
		if strings.Trim(c.New, "0") != "" && f[parents] != submodule {
			all = append(all, c)
		}
	}
	return all
}

const submodule = "160000" // the mode of a commit of another repository in a tree
