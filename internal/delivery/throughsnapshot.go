package delivery

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"muster"
	"muster/internal/git"
)

// sinceSnapshot compares the checkout with the snapshot. isNext reports whether the snapshot is the next commit of the
// branch: only then it can become one without a change of files. edited are the paths that the snapshot or the work up
// to tip changes, and that the checkout has otherwise than the snapshot. staged are the paths of which the index has
// content that neither HEAD nor the snapshot has.
func (c Checkout) sinceSnapshot(ctx context.Context, tip string) (isNext bool, edited, staged []string, err error) {
	if c.Snapshot == "" {
		return false, nil, nil, nil
	}
	parent, err := c.repo.Resolve(ctx, c.Snapshot+"^1")
	if err != nil || parent != c.Head {
		return false, nil, nil, err
	}
	if edited, err = c.edited(ctx, tip); err != nil {
		return false, nil, nil, err
	}
	var own [2][]string
	for i, commit := range []string{c.Head, c.Snapshot} {
		out, err := c.repo.Run(ctx, c.dir, "diff-index", "--cached", "--ita-invisible-in-index", "--name-only",
			"--no-renames", "--ignore-submodules=none", "--diff-filter=d", "-z", commit)
		if err != nil {
			return false, nil, nil, err
		}
		own[i] = git.SplitNUL(out)
	}
	return true, edited, both(own[0], own[1]), nil
}

// edited returns the paths of sinceSnapshot.
func (c Checkout) edited(ctx context.Context, tip string) ([]string, error) {
	before, err1 := c.changed(ctx, c.Snapshot+"^1", c.Snapshot)
	work, err2 := c.changed(ctx, c.Snapshot, tip)
	added, err3 := c.changed(ctx, c.Snapshot, tip, "--diff-filter=A")
	tree, err4 := c.onSnapshot(ctx, slices.Concat(before, work))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	edited, err := c.changed(ctx, c.Snapshot, tree)
	for _, file := range added { // git merges over a file that it ignores
		info, errLook := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(file)))
		if errLook == nil && !info.IsDir() {
			edited = append(edited, file)
		}
	}
	slices.Sort(edited)
	return slices.Compact(edited), err
}

// onSnapshot returns the tree of the snapshot with these files as a snapshot of the checkout would have them now.
func (c Checkout) onSnapshot(ctx context.Context, files []string) (tree string, err error) {
	return c.inCopy(ctx, func(x staging) ([]string, error) {
		found, err := x.lookOn(ctx, c.Snapshot)
		return both(found.files, files), err
	})
}

// lookOn is look for a checkout whose index has the tree of a commit.
func (x staging) lookOn(ctx context.Context, commit string) (found unstaged, err error) {
	_, err = x.repo.Do(ctx, git.Call{Dir: x.dir, Env: x.env(), Args: []string{
		"-c", "core.splitIndex=false", "read-tree", "--reset", commit}})
	if err != nil {
		return found, err
	}
	return x.look(ctx)
}

// IsSnapshot reports whether a snapshot of the checkout would be the commit.
func IsSnapshot(ctx context.Context, repo *git.Repo, commit string) (bool, error) {
	c := Checkout{repo: repo, dir: repo.Here()}
	tree, err := c.inCopy(ctx, func(x staging) ([]string, error) {
		found, err := x.lookOn(ctx, commit)
		return found.files, err
	})
	if err != nil {
		return false, err
	}
	is, err := repo.Tree(ctx, commit)
	return is == tree, err
}

// throughSnapshot makes the snapshot the next commit of the branch, which changes no file, and lets the user's git
// merge tip. If that fails before HEAD is at tip, all is put back. A process that is killed in between leaves the
// branch at the snapshot.
func (c Checkout) throughSnapshot(ctx context.Context, tip string, merge []string) (said string, err error) {
	err = c.withCopy(func(saved staging) error {
		_, err := git.RunAsUser(ctx, c.dir, nil, "reset", "-q", c.Snapshot)
		if err == nil {
			said, err = git.RunAsUser(ctx, c.dir, nil, merge...)
		}
		late := context.WithoutCancel(ctx)
		if err == nil || c.has(late, tip) {
			return err
		}
		if errBack := saved.putBack(late, tip); errBack != nil {
			return muster.Errorf(muster.Unavailable, "git has not merged (%w), and what it had begun is not undone: %w",
				err, errBack).WithHint("git status says what there is; muster merge goes on from the snapshot")
		}
		return err
	})
	return said, err
}

// has reports whether HEAD has the commit.
func (c Checkout) has(ctx context.Context, commit string) bool {
	head, err := c.repo.ResolveIn(ctx, c.dir, "HEAD")
	if err != nil {
		return false
	}
	has, err := c.repo.IsAncestor(ctx, commit, head)
	return has && err == nil
}

// putBack puts back the files that a merge of tip has written before it failed, the branch, and the index of which x is
// a copy. If a file has changed since, putBack changes nothing.
func (x staging) putBack(ctx context.Context, tip string) error {
	work, err1 := x.changed(ctx, x.Snapshot, tip)
	tree, err2 := x.onSnapshot(ctx, work)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	written, err1 := x.changed(ctx, x.Snapshot, tree)
	added, err2 := x.changed(ctx, x.Snapshot, tree, "--diff-filter=A")
	unlike, err3 := x.changed(ctx, tip, tree, "--diff-filter=d") // git deletes a file before it writes it
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if other := both(written, unlike); len(other) > 0 {
		return muster.Errorf(muster.Held, "%s was changed meanwhile", list(other))
	}
	if err := x.restore(ctx, written, added); err != nil {
		return err
	}
	if head, err := x.repo.ResolveIn(ctx, x.dir, "HEAD"); err != nil || head != x.Head {
		if _, err := git.RunAsUser(ctx, x.dir, nil, "reset", "-q", "--soft", x.Head); err != nil {
			return err
		}
	}
	return x.restoreIndex()
}

// restore brings files back as the snapshot has them. It has none of those that were added.
func (x staging) restore(ctx context.Context, files, added []string) error {
	isAdded := setOf(added)
	files = slices.DeleteFunc(slices.Clone(files), func(file string) bool { return isAdded[file] })
	err := x.withCopy(func(other staging) error { // git restore writes the index
		return other.asUser(ctx, files, "restore", "-q", "--worktree", "--source="+x.Snapshot)
	})
	for _, file := range added {
		file = filepath.Join(x.dir, filepath.FromSlash(file))
		err = errors.Join(err, os.Remove(file))
		for dir := filepath.Dir(file); dir != x.dir && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	}
	return err
}
