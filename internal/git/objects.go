package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

// Tree returns the tree of a commit.
func (r *Repo) Tree(ctx context.Context, commit string) (string, error) {
	return r.revParse(ctx, r.common, commit, "tree")
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
	if err != nil && ExitCode(err) != 1 { // 1: conflicts
		return "", nil, err
	}
	tree, rest, _ := strings.Cut(out, "\x00")
	if !isID(tree) || tree == "" {
		return "", nil, muster.Errorf(muster.Unavailable, "git merge-tree answers %q", out)
	}
	// Of a merge with conflicts git prints a tree too, with markers in the files, and then the files, each once.
	if err != nil {
		conflicts = SplitNUL(rest)
	}
	return tree, conflicts, nil
}

// CheckComplete refuses, as Invalid, a commit of which the repository lacks trees or files, as a partial clone does.
// Nothing is fetched, so a lane or a check of that commit could not be made.
func (r *runner) CheckComplete(ctx context.Context, commit string) error {
	if !r.isPartial || commit == "" {
		return nil
	}
	out, err := r.Run(ctx, r.common, "rev-list", "--objects", "--missing=print", "--no-walk", commit)
	if err != nil {
		return muster.Errorf(muster.Unavailable, "git cannot list the objects of %.7s: %w", commit, err)
	}
	missing := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "?") {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid, "this partial clone lacks files of the commit %.7s (%d objects), and muster "+
		"fetches nothing", commit, missing).
		WithHint("get them first: git archive -o %s %.7s", os.DevNull, commit)
}

// SplitNUL returns the entries of git's output with -z, each of which ends with a NUL.
func SplitNUL(out string) []string {
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}

// Status reports whether the worktree at dir has anything uncommitted: changed, staged, unmerged, or untracked and not
// ignored.
func (r *Repo) Status(ctx context.Context, dir string) (dirty bool, err error) {
	out, err := r.Run(ctx, dir, "status", "--porcelain", "-z", "--untracked-files=normal")
	return out != "", err
}

// Pack makes the commit durable, with all that it needs beyond the commit base, which is on the disk already; "" is
// none. Objects that are still loose go into a pack, which git syncs; then the pack's directory is synced. Call it
// before a ref or a record names a commit: a power cut could otherwise leave the name of a commit that the disk
// does not have.
func (r *Repo) Pack(ctx context.Context, commit, base string) error {
	revisions := commit + "\n"
	if base != "" {
		revisions += "^" + base + "\n"
	}
	packs := filepath.Join(r.common, "objects", "pack")
	_, err := r.Do(ctx, Call{Dir: r.common, Stdin: revisions, Args: []string{"pack-objects", "--revs",
		"--incremental", "--non-empty", "--delta-base-offset", "--quiet", filepath.Join(packs, "pack")}})
	if err != nil {
		return muster.Errorf(muster.Unavailable, "commits cannot be made durable: %w", err)
	}
	failpoint.Hit("objects.packed")
	if err := (durable.OS{}).SyncDir(packs); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be synced: %w", packs, err)
	}
	return nil
}
