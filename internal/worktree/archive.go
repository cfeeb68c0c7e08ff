package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
)

// archiveRefs is where the work of removed lanes goes: refs/muster/archive/NAME-N.
const archiveRefs = "refs/muster/archive/"

// ArchiveRef makes refs/muster/archive/NAME-N for a commit, with the first free N, and returns it. When a ref of NAME
// is at the commit already, or has the content of a commit that snapshot has made, it returns that one.
func ArchiveRef(ctx context.Context, repo *git.Repo, name, commit string) (string, error) {
	content, subject := contentOf(ctx, repo, commit)
	hasContent := func(other string) bool {
		is, _ := contentOf(ctx, repo, other)
		return is == content
	}
	for {
		existing, err := repo.Refs(ctx, archiveRefs)
		if err != nil {
			return "", err
		}
		ref := archiveRefs + name + "-1"
		for n := 2; existing[ref] != ""; n++ {
			at := existing[ref]
			if at == commit || isSnapshot(subject) && hasContent(at) {
				return ref, nil
			}
			ref = fmt.Sprintf("%s%s-%d", archiveRefs, name, n)
		}
		// Stale: another process has just taken this number. The next one may be free.
		err = repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: commit}})
		if !errors.Is(err, muster.ErrStale) {
			return ref, err
		}
	}
}

const archivedSuffix = " as it was when it was archived"

func archiveSubject(lane muster.Name) string { return "lane " + string(lane) + archivedSuffix }

// contentOf returns a commit's tree and parents, and its subject. Both are "" when git cannot tell.
func contentOf(ctx context.Context, repo *git.Repo, commit string) (content, subject string) {
	out, _ := repo.Run(ctx, repo.CommonDir(), "rev-list", "--max-count=1", "--no-commit-header", "--format=%T %P%n%s",
		commit)
	content, subject, _ = strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	return content, subject
}

func isSnapshot(subject string) bool { return strings.HasSuffix(subject, archivedSuffix) }

// snapshot returns a commit of all that the lane holds: the tip of its branch when nothing is uncommitted, else a new
// commit, which no ref has yet. It changes nothing in the lane.
func (c checkout) snapshot(ctx context.Context) (commit string, err error) {
	head, tip, err := c.commits(ctx)
	if err != nil || head == "" {
		return tip, err
	}
	return c.snapshotOn(ctx, head, tip)
}

// snapshotOn is snapshot of a checkout whose HEAD is at the commit head, and whose branch is at tip; "" is no branch.
func (c checkout) snapshotOn(ctx context.Context, head, tip string) (commit string, err error) {
	merging, err := c.mergeHead(ctx)
	if err != nil {
		return "", err
	}
	tree, err := c.writeTree(ctx)
	if err != nil {
		return "", err
	}
	// Commits of the owner may be at HEAD only, on the branch only, or in a merge under way: all are kept as parents.
	return c.commitOn(ctx, tree, archiveSubject(c.lane.Name)+"\n", head, tip, merging)
}

// commitOn makes a commit of a tree of the checkout, as the runtime's identity, with the commits as parents: each once,
// without those that are "". The first is in the repository. It returns a single parent that has the same tree instead.
func (c checkout) commitOn(ctx context.Context, tree, message string, commits ...string) (string, error) {
	var parents []string
	for _, p := range commits {
		if p != "" && !slices.Contains(parents, p) {
			parents = append(parents, p)
		}
	}
	if len(parents) == 1 {
		if was, err := c.treeOf(ctx, parents[0]); err != nil || was == tree {
			return parents[0], err
		}
	}
	if err := c.take(ctx, append(slices.Clone(parents[1:]), tree)...); err != nil {
		return "", err
	}
	if c.sub == "" {
		return c.repo.CommitTree(ctx, tree, parents, message)
	}
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := c.do(ctx, git.Call{Args: args, Stdin: message})
	return strings.TrimSpace(out), err
}

func (c checkout) treeOf(ctx context.Context, commit string) (string, error) {
	if c.sub == "" {
		return c.repo.Tree(ctx, commit)
	}
	out, err := c.run(ctx, "rev-parse", commit+"^{tree}")
	return strings.TrimSpace(out), err
}

// take makes what the git of the lane has made objects of the repository. A submodule keeps its own.
func (c checkout) take(ctx context.Context, ids ...string) error {
	if c.sub != "" {
		return nil
	}
	p, err := c.place(ctx)
	if err != nil {
		return err
	}
	return p.TakeObjects(ctx, ids, p.Have())
}

// writeTree writes a tree of the lane's files. They are staged in a copy of the lane's git index, so that the lane's
// owner, who may be at work, sees no change.
func (c checkout) writeTree(ctx context.Context) (string, error) {
	// A directory, because git makes a lock beside its index.
	tmp, remove, err := c.temp.Create()
	if err != nil {
		return "", err
	}
	defer remove()
	c.index = filepath.Join(tmp, "index")
	if err := c.copyIndex(ctx); err != nil {
		return "", muster.Errorf(muster.Unavailable, "the lane's index cannot be read: %w", err)
	}
	found, err := c.look(ctx)
	if err != nil || found.tree != "" {
		return found.tree, err
	}
	return c.stage(ctx, found)
}

// copyIndex copies the index of the checkout to the one that is staged to. That of a submodule is made anew, because
// only git knows where it is.
func (c checkout) copyIndex(ctx context.Context) error {
	if c.sub != "" {
		_, err := c.run(ctx, "read-tree", "HEAD")
		return err
	}
	p, err := c.place(ctx)
	if err != nil {
		return err
	}
	return p.CopyIndex(c.index)
}
