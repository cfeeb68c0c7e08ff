package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

// checkout is the working tree of a lane as git sees it. Its methods ask git about the lane and change its files; none
// of them reads or changes the index.
type checkout struct {
	repo *git.Repo
	lane muster.Lane
	temp *CheckDirs // makes temporary directories
	// target is a name of the commit that the lane's work is to land on.
	target string

	isSubmodule bool // it is a submodule of a lane: its objects are in a repository of its own, not in repo
}

// run runs git in the lane.
func (c checkout) run(ctx context.Context, args ...string) (string, error) {
	return c.repo.Run(ctx, c.lane.Path, args...)
}

// verify checks that the lane's path is a worktree of this repository and the lane's, and returns what its HEAD points
// to: refs/heads/..., or "HEAD" when it is detached. Whatever is unclear is an error: a command that ran in the wrong
// directory could destroy the user's work.
func (c checkout) verify(ctx context.Context) (head string, err error) {
	head, err = headOf(ctx, c.repo, c.lane.Path)
	if err == nil && head != branchRef(c.lane) {
		err = c.checkOrigin(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return head, err
	}
	if errors.Is(err, errOtherWorktree) {
		return "", muster.Errorf(muster.Invalid, "%s is not the lane %s: %w, on %s", c.lane.Path, c.lane.Name, err,
			strings.TrimPrefix(head, "refs/heads/")).
			WithHint("it stays as it is; move it elsewhere: git worktree move %s OTHER-PLACE",
				text.ShellQuote(c.lane.Path))
	}
	// The text only: that git has failed here is no reason to try a landing again.
	return "", muster.Errorf(muster.Invalid, "%s is not the lane %s any more: %s", c.lane.Path, c.lane.Name,
		err.Error()).WithHint("%s", c.reconnectHint(ctx))
}

// headOf returns what HEAD points to in a linked worktree. The error says why dir is none of this repository.
func headOf(ctx context.Context, repo *git.Repo, dir string) (head string, err error) {
	if head, ok := repo.LinkedHead(dir); ok && ctx.Err() == nil {
		return head, nil // the usual case, read without a git process: every call of a tool asks
	}
	if head, ok := git.PrivateHead(repo, dir); ok && ctx.Err() == nil {
		return head, nil
	}
	// A link could lead to any worktree, also to the user's own checkout.
	if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return "", errors.New("it is a symbolic link")
	}
	out, err := repo.Run(ctx, dir, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir",
		"--git-dir", "--symbolic-full-name", "HEAD")
	if err != nil {
		return "", err
	}
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) == 4 && isSamePath(line[0], dir) && isSamePath(line[1], repo.CommonDir()) && line[2] != line[1] {
		return line[3], nil
	}
	return "", fmt.Errorf("it is part of %q", line[0])
}

// isSamePath reports whether two paths name the same place. git writes slashes, and resolves symbolic links; ours are
// resolved only when the names differ.
func isSamePath(a, b string) bool {
	a, b = filepath.FromSlash(a), filepath.FromSlash(b)
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ra, err := filepath.EvalSymlinks(a)
	rb, _ := filepath.EvalSymlinks(b) // "" when that fails, which no path is
	return err == nil && ra == rb
}

// isChanged reports whether the lane holds anything beyond its base: uncommitted, untracked, or committed, at its HEAD
// or on its branch. Work may be in each of them alone. When it cannot be told, isChanged returns an error, and nothing
// may be removed.
func (c checkout) isChanged(ctx context.Context) (changed bool, err error) {
	defer func() {
		if err != nil {
			err = muster.Errorf(muster.Invalid, "cannot verify that the lane %s has nothing to lose: %w",
				c.lane.Name, err)
		}
	}()
	if c.lane.Base == "" {
		return false, muster.Errorf(muster.NotFound, "what it was made from is not recorded")
	}
	head, tip, err := c.commits(ctx)
	if err != nil {
		return false, err
	}
	// The owner may have another branch checked out: then HEAD is at the base while the branch has commits.
	if head != "" && head != c.lane.Base || tip != "" && tip != c.lane.Base {
		return true, nil
	}
	if head == "" {
		return false, nil
	}
	if changed, err := c.repo.Status(ctx, c.lane.Path); err != nil || changed {
		return changed, err
	}
	// git says nothing of files that it is told to overlook, and of what lies in submodules.
	entries, err := staging{checkout: c}.entries(ctx)
	if err != nil {
		return false, err
	}
	assumed, skipped, err := c.hidden(ctx, entries)
	return len(assumed)+len(skipped) > 0 || c.isSubmoduleChanged(ctx, entries), err
}

// commits returns the commit at the lane's HEAD, "" when its directory is gone, and the tip of its branch, "" when that
// is gone.
func (c checkout) commits(ctx context.Context) (head, tip string, err error) {
	if tip, err = c.repo.Ref(ctx, branchRef(c.lane)); err != nil || durable.IsMissing(c.lane.Path) {
		return "", tip, err
	}
	if _, err = c.verify(ctx); err == nil {
		head, err = c.repo.ResolveIn(ctx, c.lane.Path, "HEAD")
	}
	return head, tip, err
}

// mergeHead returns the commit that an unfinished merge brings in, "" when there is no merge.
func (c checkout) mergeHead(ctx context.Context) (string, error) {
	commit, err := c.repo.ResolveIn(ctx, c.lane.Path, "MERGE_HEAD")
	return commit, ignoreNotFound(err)
}

// unlockHint is what to type when somebody has locked the lane's worktree (git worktree lock). It is "" when nobody
// has, or when git cannot tell.
func (c checkout) unlockHint(ctx context.Context) string {
	w, _, err := c.repo.WorktreeAt(ctx, c.lane.Path)
	if err != nil || !w.Locked {
		return ""
	}
	return "git worktree unlock " + text.ShellQuote(c.lane.Path)
}

// reconnectHint is what to do when the lane's directory is no worktree of this repository any more, or when its branch
// is gone. git can write the .git file of a worktree that it still has registered.
func (c checkout) reconnectHint(ctx context.Context) string {
	path := c.lane.Path
	if git.Moved(c.repo.CommonDir(), path, branchRef(c.lane)) != "" {
		return "muster doctor --repair"
	}
	_, isKnown, err := c.repo.WorktreeAt(ctx, path)
	if err != nil {
		return "see what is there; nothing in it is touched"
	}
	moveAway := fmt.Sprintf("git cannot mend it. Move it away: mv %s %s  (its files stay there, its "+
		"commits on the branch %s), then: muster doctor --repair",
		text.ShellQuote(path), text.ShellQuote(path+".lost"), c.lane.Branch)
	if st, err := os.Lstat(path); !isKnown || err != nil || !st.IsDir() {
		return moveAway
	}
	link := filepath.Join(path, ".git")
	if st, err := os.Lstat(link); err == nil && st.IsDir() {
		return fmt.Sprintf("mv %s %s  (a repository of its own), then: git worktree repair",
			text.ShellQuote(link), text.ShellQuote(link+".other"))
	}
	out, _ := c.run(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir") // "" when it fails
	if c.lane.Base != "" && isSamePath(strings.TrimSpace(out), c.repo.CommonDir()) {
		// The worktree is connected, so it is its branch that is gone.
		return fmt.Sprintf("git branch %s %s  (what it was made from; its files stay as they are)",
			c.lane.Branch, c.lane.Base)
	}
	if git.AdminDir(c.repo.CommonDir(), path) != "" {
		return moveAway // the two name each other, so it is the registration that is damaged
	}
	return "git worktree repair"
}
