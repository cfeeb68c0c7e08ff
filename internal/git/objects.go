package git

import (
	"context"
	"os"
	"strconv"
	"strings"

	"muster"
)

// Tree returns the tree of a commit.
func (r *Repo) Tree(ctx context.Context, commit string) (string, error) {
	if made, ok := r.commits.made.Load(commit); ok {
		return made.(madeCommit).tree, nil
	}
	return r.revParse(ctx, r.common, commit, "tree")
}

// CommitTree makes a commit object, as the runtime's identity. No ref moves, and nothing is synced to disk: see Pack.
func (r *Repo) CommitTree(ctx context.Context, tree string, parents []string, message string) (string, error) {
	return r.commitTree(ctx, Call{Args: []string{"commit-tree", "-F", "-", tree}, Stdin: message}, tree, parents)
}

// commitTree makes a commit by a call that lacks the parents.
func (r *Repo) commitTree(ctx context.Context, c Call, tree string, parents []string) (string, error) {
	c.Dir = r.common
	for _, p := range parents {
		c.Args = append(c.Args, "-p", p)
	}
	out, err := r.Do(ctx, c)
	id := strings.TrimSpace(out)
	if err == nil && len(parents) > 0 && IsID(tree) {
		r.commits.made.Store(id, madeCommit{tree, parents[0]})
	}
	return id, err
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
	if !IsID(tree) || tree == "" {
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
	missing := strings.Count("\n"+out, "\n?")
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

// CheckoutState is how the user's checkout stands.
type CheckoutState struct {
	Branch  string // without refs/heads/, "" when HEAD is detached
	Head    string // the commit
	Changed int    // how many paths have something uncommitted; an untracked directory counts as one
	// Behind is how many commits Upstream, such as origin/main, has that HEAD lacks, as they were fetched last.
	Upstream string
	Behind   int
}

// Checkout asks git once for the branch, the commit and the uncommitted changes of the user's checkout.
func Checkout(ctx context.Context, r *Repo) (s CheckoutState, err error) {
	out, err := r.Run(ctx, r.here, "status", "--porcelain=v2", "--branch", "-z", "--no-renames",
		"--untracked-files=normal")
	for _, entry := range SplitNUL(out) {
		if head, ok := strings.CutPrefix(entry, "# branch.oid "); ok {
			s.Head = head
		} else if branch, ok := strings.CutPrefix(entry, "# branch.head "); ok && branch != "(detached)" {
			s.Branch = branch
		} else if upstream, ok := strings.CutPrefix(entry, "# branch.upstream "); ok {
			s.Upstream = upstream
		} else if ab, ok := strings.CutPrefix(entry, "# branch.ab "); ok { // +AHEAD -BEHIND
			_, behind, _ := strings.Cut(ab, " -")
			s.Behind, _ = strconv.Atoi(behind) // "?" where the user wants git not to count
		} else if !strings.HasPrefix(entry, "# ") {
			s.Changed++
		}
	}
	return s, err
}
