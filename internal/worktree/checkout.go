package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

// checkout is the working tree of a lane as git sees it. Its methods ask git about the lane, and change its files and
// its index.
type checkout struct {
	repo *git.Repo
	lane muster.Lane
	temp *CheckDirs // makes temporary directories

	// sub is the path of a submodule of the lane, which is then what the checkout is of: its objects are in a
	// repository of its own. "" is the lane itself.
	sub string

	index string // a git index to stage to, in a directory of its own; "" is that of the checkout
}

func (c checkout) dir() string { return cmp.Or(c.sub, c.lane.Path) }

// place returns where the git of the lane works, after what commands have committed there is the repository's.
func (c checkout) place(ctx context.Context) (*git.Place, error) {
	ref := ""
	if c.lane.Branch != "" {
		ref = branchRef(c.lane)
	}
	p, err := git.OpenPlace(c.repo, c.lane.Path, ref)
	if err == nil {
		err = p.TakeBranch(ctx)
	}
	return p, err
}

func (c checkout) do(ctx context.Context, call git.Call) (string, error) {
	p, err := c.place(ctx)
	if err != nil {
		return "", err
	}
	call.Dir = c.sub
	if c.index != "" {
		call.Env = append(slices.Clip(call.Env), "GIT_INDEX_FILE="+c.index)
		call.Write = append(slices.Clip(call.Write), filepath.Dir(c.index))
	}
	return p.Do(ctx, call)
}

func (c checkout) run(ctx context.Context, args ...string) (string, error) {
	return c.do(ctx, git.Call{Args: args})
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
	// The usual case is read without a git process: every call of a tool asks.
	if head, ok := git.PlaceHead(repo, dir); ok && ctx.Err() == nil {
		return head, nil
	}
	// A link could lead to any worktree, also to the user's own checkout.
	if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return "", errors.New("it is a symbolic link")
	}
	if git.AdminDir(repo.CommonDir(), dir) == "" {
		return "", errors.New("its .git does not lead to this repository, which has no worktree there or another one")
	}
	out, err := git.AskWorktree(ctx, repo, dir, "symbolic-ref", "-q", "HEAD")
	if git.ExitCode(err) == 1 {
		return "HEAD", nil
	}
	head = strings.TrimSpace(out)
	if at, refErr := repo.Ref(ctx, head); err == nil && refErr == nil && at == "" {
		err = fmt.Errorf("its branch %s is gone", strings.TrimPrefix(head, "refs/heads/"))
	}
	return head, err
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
// or on its branch. When it cannot be told it returns an error, and nothing may be removed.
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
	found, err := c.look(ctx)
	if err != nil || len(found.unstaged)+len(found.unmerged)+len(found.inner) > 0 {
		return err == nil, err
	}
	_, err = c.run(ctx, "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--")
	if git.ExitCode(err) == 1 { // something is staged
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// git says nothing of files that it is told to overlook, and of what lies in submodules.
	assumed, skipped, err := c.hidden(ctx, found.entries)
	return len(assumed)+len(skipped) > 0 || c.isSubmoduleChanged(ctx, found.entries), err
}

// commits returns the commit at the lane's HEAD, "" when its directory is gone, and the tip of its branch, "" when that
// is gone.
func (c checkout) commits(ctx context.Context) (head, tip string, err error) {
	if tip, err = c.repo.Ref(ctx, branchRef(c.lane)); err != nil || durable.IsMissing(c.lane.Path) {
		return "", tip, err
	}
	if _, err = c.verify(ctx); err == nil {
		head, err = c.head(ctx)
	}
	return head, tip, err
}

// head returns the commit at HEAD. Errors: NotFound, Invalid.
func (c checkout) head(ctx context.Context) (string, error) {
	p, err := c.place(ctx)
	if err != nil {
		return "", err
	}
	if head, ok := p.Head(); ok && c.sub == "" {
		if git.IsID(head) {
			return head, c.own(ctx, head)
		}
		if head == branchRef(c.lane) {
			if at, err := c.repo.Ref(ctx, head); err != nil || at != "" {
				return at, err
			}
		}
	}
	out, err := c.run(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if git.ExitCode(err) == 1 {
		return "", muster.Errorf(muster.NotFound, "there is no commit at HEAD in %s", c.dir())
	}
	if head := strings.TrimSpace(out); err == nil {
		return head, c.own(ctx, head)
	}
	return "", err
}

// own makes a commit of the lane's git the repository's, unless it is. Commands have made it on a branch of their own.
func (c checkout) own(ctx context.Context, commit string) error {
	if _, err := c.repo.Resolve(ctx, commit); !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	return c.take(ctx, commit)
}

// change is a file that differs from HEAD: changed, staged, unmerged, or untracked and not ignored.
type change struct {
	file  string // as git names it; of another repository it ends with a slash
	entry string // what git status --porcelain=v2 says
}

// changes returns the commit at HEAD, "" where there is none, and all that is not committed.
func (c checkout) changes(ctx context.Context) (head string, all []change, err error) {
	out, err := c.run(ctx, "status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")
	if err != nil {
		return "", nil, muster.Errorf(muster.Unavailable, "git cannot see what has changed in %s: %w", c.dir(), err)
	}
	for _, entry := range git.SplitNUL(out) {
		if field, ok := strings.CutPrefix(entry, "# "); ok {
			if id, ok := strings.CutPrefix(field, "branch.oid "); ok && git.IsID(id) {
				head = id
			}
			continue
		}
		before := 1 // fields before the path, of an untracked file
		switch entry[0] {
		case '1': // changed
			before = 8
		case 'u': // unmerged
			before = 10
		}
		fields := strings.SplitN(entry, " ", before+1)
		all = append(all, change{fields[len(fields)-1], entry})
	}
	return head, all, nil
}

// mergeHead returns the commit that an unfinished merge brings in, "" when there is no merge.
func (c checkout) mergeHead(ctx context.Context) (string, error) {
	if c.sub == "" {
		p, err := c.place(ctx)
		if err != nil {
			return "", err
		}
		return p.Pending("MERGE_HEAD"), nil
	}
	out, err := c.run(ctx, "rev-parse", "--verify", "-q", "MERGE_HEAD")
	if git.ExitCode(err) == 1 {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// unlockHint is what to type when somebody has locked the lane's worktree (git worktree lock), else "".
func (c checkout) unlockHint(ctx context.Context) string {
	w, _, err := c.repo.WorktreeAt(ctx, c.lane.Path)
	if err != nil || !w.Locked {
		return ""
	}
	return "git worktree unlock " + text.ShellQuote(c.lane.Path)
}

// reconnectHint is what to do when the lane's directory is no worktree of this repository any more, or its branch is
// gone. git can write the .git file of a worktree that it still has registered.
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
	link := filepath.Join(path, ".git")
	dir, dirErr := os.Lstat(path)
	file, fileErr := os.Lstat(link)
	admin := git.DirOf(path)
	head, _ := durable.ReadRegular(filepath.Join(admin, "HEAD"), 4<<10) // what cannot be read is another lane's
	isOurs := filepath.Dir(admin) == filepath.Join(c.repo.CommonDir(), "worktrees")
	switch {
	case !isKnown && isOurs && string(head) == "ref: "+branchRef(c.lane)+"\n": // it names another directory
		return "git worktree repair " + text.ShellQuote(path)
	case !isKnown || dirErr != nil || !dir.IsDir():
		return moveAway
	case fileErr == nil && file.IsDir():
		return fmt.Sprintf("mv %s %s  (a repository of its own), then: git worktree repair",
			text.ShellQuote(link), text.ShellQuote(link+".other"))
	case git.AdminDir(c.repo.CommonDir(), path) == "":
		return "git worktree repair"
	}
	at, err := c.repo.Ref(ctx, branchRef(c.lane))
	_, headErr := git.AskWorktree(ctx, c.repo, path, "symbolic-ref", "-q", "HEAD")
	if headErr == nil && err == nil && at == "" && c.lane.Base != "" {
		return fmt.Sprintf("git branch %s %s  (what it was made from; its files stay as they are)", c.lane.Branch,
			c.lane.Base)
	}
	return moveAway // the two name each other, so it is the registration that is damaged
}
