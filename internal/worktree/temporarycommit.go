package worktree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
)

// What TemporaryCommit takes of a lane. A file that is larger stays as the lane's HEAD has it. A lane with more is
// refused: its owner has unpacked something there, and each look would read all of it.
const (
	maxContentFile  = 1 << 20
	maxContentBytes = 32 << 20
	maxContentFiles = 2000
)

// errNoContent says that a lane has no content that could be merged now.
var errNoContent = muster.Errorf(muster.Unavailable, "the lane holds a merge that is not finished, or too much")

// TemporaryCommit returns a commit of what the lane holds now, committed or not, without the files that git ignores. It
// is made among the objects below the git directory into, which are those of repo (see git.WithObjects), with a copy of
// the lane's git index in the directory temp, which has nothing else: the lane's owner, who may be at work, sees no
// change. The same content has the same id.
// base reports that the lane holds nothing beyond its base.
//
// Unlike Commit, it looks for nothing that must not land, and keeps nothing of submodules. Errors: Unavailable while a
// merge is not resolved and where there is too much to look at; those of Enter.
func TemporaryCommit(
	ctx context.Context, l *Lanes, repo *git.Repo, into string, name muster.Name, temp string,
) (commit string, base bool, err error) {
	c, err := l.enter(ctx, name)
	if err != nil {
		return "", false, err
	}
	p, err := c.place(ctx)
	if err != nil {
		return "", false, err
	}
	head, changes, err := c.changes(ctx)
	if err == nil && head == "" {
		err = errNoContent
	}
	if err != nil {
		return "", false, err
	}
	files, err := contentFiles(c.lane.Path, changes)
	if err != nil {
		return "", false, err
	}
	// A merge that is resolved and not committed has two parents. Without the second one, all that it brings in would
	// count as the lane's own change.
	parents := []string{head}
	if other := p.Pending("MERGE_HEAD"); other != "" {
		parents = append(parents, other)
	}
	if len(files) == 0 && len(parents) == 1 {
		return head, head == c.lane.Base, p.Take(ctx, "", into, parents, p.Have())
	}
	tree, err := c.writeContent(ctx, files, temp)
	if err == nil {
		err = p.Take(ctx, "", into, append(slices.Clone(parents), tree), p.Have())
	}
	if err != nil {
		return "", false, err
	}
	// The dates are fixed, so that the id depends on the content alone.
	args := []string{"commit-tree", tree, "-m", "the content of a lane"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := repo.Do(ctx, git.Call{Dir: repo.CommonDir(), Args: args,
		Env: []string{"GIT_AUTHOR_DATE=1000000000 +0000", "GIT_COMMITTER_DATE=1000000000 +0000"}})
	return strings.TrimSpace(out), false, err
}

// contentFiles returns the files that are changed in the checkout at dir, without submodules, repositories inside the
// lane and large files.
func contentFiles(dir string, changes []change) (files []string, err error) {
	size := int64(0)
	for _, change := range changes {
		isSubmodule := change.entry[0] == '1' && strings.HasPrefix(strings.SplitN(change.entry, " ", 4)[2], "S")
		if change.entry[0] == 'u' { // its owner knows what it conflicts with
			return nil, errNoContent
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(change.file)))
		isLeftOut := strings.HasSuffix(change.file, "/") || isSubmodule ||
			err == nil && (info.IsDir() || info.Size() > maxContentFile ||
				!info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0)
		if isLeftOut {
			continue
		}
		if err == nil {
			size += info.Size()
		}
		files = append(files, change.file)
		if size > maxContentBytes || len(files) > maxContentFiles {
			return nil, errNoContent
		}
	}
	return files, nil
}

// writeContent writes the tree of the lane with these files as they are now. All other files are as its index has them.
func (c checkout) writeContent(ctx context.Context, files []string, temp string) (string, error) {
	// A git that was killed may have left its lock beside the last copy.
	if err := durable.RemoveContents(temp, ""); err != nil {
		return "", err
	}
	c.index = filepath.Join(temp, "index")
	if err := c.copyIndex(ctx); err != nil {
		return "", err
	}
	call := git.Call{Args: []string{"write-tree"}}
	if len(files) > 0 {
		// A filter that must not run, or cannot, makes git fail: nothing is ever written in another form.
		call = addNamed(files)
	}
	call.ReadsTree = true
	out, err := c.do(ctx, call)
	return strings.TrimSpace(out), err
}
