package worktree

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/leftovers"
)

// leaveOut leaves out the directories among untracked files that a program has made, unless the lane's base has files
// there. It reports whether there was one that was not left out before. A submodule has no list.
func (c checkout) leaveOut(ctx context.Context, untracked []string) (isNew bool, err error) {
	if c.sub != "" || c.lane.Base == "" {
		return false, nil
	}
	dirs := leftovers.Marked(untracked, func(file string) ([]byte, error) {
		return durable.ReadBelow(c.dir(), filepath.Join(c.dir(), filepath.FromSlash(file)), maxContentFile)
	})
	if len(dirs) == 0 {
		return false, nil
	}
	dirs = dirs[:min(len(dirs), maxNamed)] // the next look finds the others
	tracked, err := c.repo.Do(ctx, git.Call{Dir: c.repo.CommonDir(), Env: []string{"GIT_LITERAL_PATHSPECS=1"},
		Args: append([]string{"ls-tree", "-z", "--name-only", "--full-tree", c.lane.Base, "--"}, dirs...)})
	p, placeErr := c.place(ctx)
	if err := cmp.Or(err, placeErr); err != nil {
		return false, err
	}
	return p.LeaveOut(leftovers.Directories(slices.DeleteFunc(dirs, func(dir string) bool {
		return slices.Contains(git.SplitNUL(tracked), dir)
	})))
}

// LeftOut returns the files and directories of a lane that do not land because builds leave them. Those that the
// project or the user ignores are not among them.
func (l *Lanes) LeftOut(ctx context.Context, name muster.Name) ([]string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	names, err := l.checkout(lane).leftOut(ctx)
	if err == nil && len(names) == 0 {
		l.nothingLeft.Store(lane.Path, true)
	}
	return names, err
}

// leftOutScript prints what is ignored, and by which lines.
const leftOutScript = `git "$@" | tr '\000\n' '\n\000' | sed -n 's/^!! //p' | tr '\n\000' '\000\n' |
	git check-ignore -z -v --stdin || [ $? = 1 ]`

func (c checkout) leftOut(ctx context.Context) ([]string, error) {
	p, err := c.place(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.do(ctx, git.Call{Script: leftOutScript, Look: true, Args: []string{"status", "--porcelain", "-z",
		"--no-renames", "--untracked-files=all", "--ignored=matching"}})
	return leftovers.Named(p.Leftovers(), git.SplitNUL(out)), err
}

func leftoversSubject(lane muster.Name) string {
	return "lane " + string(lane) + " with what does not land" + archivedSuffix
}

// addLeftovers stages files on top of a commit, as far as git can read them, and prints the tree.
const addLeftovers = `git read-tree "$commit" && { git "$@" || :; } && exec git write-tree`

// withLeftovers returns a commit on top of another one that has what is left out of landings too: a name can be wrong
// about what it is. What is too much or cannot be read is not there. Where there is none the commit is the same.
func (c checkout) withLeftovers(ctx context.Context, commit string, names []string) (string, error) {
	if len(names) == 0 {
		return commit, nil
	}
	out, err := c.do(ctx, git.Call{Env: []string{"GIT_LITERAL_PATHSPECS=1"},
		Args: append([]string{"ls-files", "-z", "--others", "--"}, names[:min(len(names), maxContentFiles)]...)})
	if err != nil {
		return "", err
	}
	call := addNamed(leftovers.Small(names, git.SplitNUL(out), func(file string) int64 {
		if info, err := os.Lstat(filepath.Join(c.dir(), filepath.FromSlash(file))); err == nil {
			return info.Size()
		}
		return 0
	}))
	call.Script, call.Env = addLeftovers, append(call.Env, "commit="+commit)
	call.Args = append(call.Args, "--force", "--ignore-errors")
	tmp, remove, err := c.temp.Create()
	if err != nil {
		return "", err
	}
	defer remove()
	c.index = filepath.Join(tmp, "index")
	tree, err := c.do(ctx, call)
	if err != nil {
		return "", err
	}
	return c.commitOn(ctx, strings.TrimSpace(tree), leftoversSubject(c.lane.Name)+"\n", commit)
}
