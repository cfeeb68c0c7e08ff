package git

import (
	"context"
	"strings"

	"muster"
)

// Tree returns the tree of a commit.
func (r *Repo) Tree(ctx context.Context, commit string) (string, error) {
	out, err := r.Run(ctx, r.common, "rev-parse", "--verify", "-q", commit+"^{tree}")
	if exitCode(err) > 0 {
		return "", muster.Errorf(muster.NotFound, "there is no commit %s", commit)
	}
	return strings.TrimSpace(out), err
}

// CommitTree makes a commit object, as the runtime's identity. No ref moves, and nothing is synced to disk: see Pack.
func (r *Repo) CommitTree(ctx context.Context, tree string, parents []string, message string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := r.Do(ctx, Call{Dir: r.common, Args: args, Stdin: message})
	return strings.TrimSpace(out), err
}

// MergeTree merges the commit theirs into the commit ours, without a working tree. When there are conflicts it returns
// their paths, and the tree is of no use. Attributes inside the trees do not count here; a merge in a worktree obeys
// them.
func (r *Repo) MergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	// Bare: nothing of the user's checkout is read, and no temporary file comes near it.
	out, err := r.Do(ctx, Call{Dir: r.common, Bare: true, Args: []string{"merge-tree", "--write-tree", "--no-messages",
		"--name-only", "-z", ours, theirs}})
	if err != nil && exitCode(err) != 1 { // 1: conflicts
		return "", nil, err
	}
	// Of a merge with conflicts git prints a tree too, with markers in the files.
	conflicted := err != nil
	field := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if !isID(field[0]) || field[0] == "" {
		return "", nil, muster.Errorf(muster.Unavailable, "git merge-tree answers %q", out)
	}
	if !conflicted {
		return field[0], nil, nil
	}
	seen := map[string]bool{}
	for _, path := range field[1:] {
		if path != "" && !seen[path] {
			seen[path] = true
			conflicts = append(conflicts, path)
		}
	}
	return field[0], conflicts, nil
}

// Status reports whether the worktree at dir has anything uncommitted: changed, staged, unmerged, or untracked and not
// ignored.
func (r *Repo) Status(ctx context.Context, dir string) (dirty bool, err error) {
	out, err := r.Run(ctx, dir, "status", "--porcelain", "-z", "--untracked-files=normal")
	return out != "", err
}
