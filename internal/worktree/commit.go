package worktree

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/text"
)

// Commit commits everything uncommitted in the lane as the runtime's identity, except ignored files, and finishes a
// merge that the runtime began. It returns the lane's head; changed reports whether that may differ from the lane's
// base. It removes a lock that a killed git left in the lane. Errors: Invalid (conflicts that are not resolved,
// repositories inside the lane, a lane that is not on its branch), Unavailable (git was killed).
func (l *Lanes) Commit(ctx context.Context, name muster.Name, message string) (head string, changed bool, err error) {
	c, release, err := l.enterAlone(ctx, name)
	if err != nil {
		return "", false, err
	}
	defer release()
	p, err := c.place(ctx)
	if err == nil {
		// A git of a tool that was killed leaves its lock, with which every later git would fail.
		err = git.AwaitWorktreeLock(ctx, p.GitDir())
	}
	if err == nil {
		head, err = c.commit(ctx, message)
	}
	// What a merge left is of no interest any more. Nothing is written for lanes without one, which are nearly all.
	if _, ok := c.lane.Extra[fieldConflicts]; ok && err == nil {
		_, err = l.index.update(ctx, name, func(row *muster.Lane) error {
			clearField(row, fieldConflicts)
			return nil
		})
	}
	if err != nil {
		return "", false, err
	}
	// Where no log of git's confirms the base, the target decides: only the row says that there is no work.
	return head, head != c.lane.Base || git.MadeAt(l.repo, branchRef(c.lane)) == "", nil
}

func (c checkout) commit(ctx context.Context, message string) (head string, err error) {
	found, err := c.look(ctx)
	if err != nil {
		return "", err
	}
	open, err := c.openOf(ctx, found.unmerged)
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		return "", muster.Errorf(muster.Invalid, "the merge in lane %s is not resolved: %s",
			c.lane.Name, conflictList(open)).WithHint("edit these files until no conflict marker is left; " +
			"git add or git rm a file that is right as it is")
	}
	// All is staged before it is decided whether there is anything to commit: the owner may have staged, committed or
	// done neither.
	tree, err := c.stage(ctx, found)
	if err != nil {
		return "", err
	}
	if head, err = c.commitTreeOf(ctx, tree, message); err != nil || c.sub != "" {
		return head, err
	}
	return head, c.refusePaths(ctx, head)
}

// commitTreeOf commits a tree that was staged in the checkout to its branch, and ends what is under way. It returns the
// commit, which is the one before where nothing has changed.
func (c checkout) commitTreeOf(ctx context.Context, tree, message string) (head string, err error) {
	var before string
	if c.sub == "" {
		before, err = c.repo.Resolve(ctx, branchRef(c.lane)) // wherever commands have let HEAD lead meanwhile
	} else {
		before, err = c.head(ctx)
	}
	if err != nil {
		return "", err
	}
	merging, err := c.mergeHead(ctx)
	if err != nil {
		return "", err
	}
	if head, err = c.commitOn(ctx, tree, message, before, merging); err != nil || head == before {
		return head, err
	}
	if c.sub != "" {
		_, err := c.run(ctx, "reset", "-q", head) // the files stay as they are
		return head, err
	}
	if err := c.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(c.lane), New: head, Old: before}}); err != nil {
		return "", err
	}
	p, err := c.place(ctx)
	if err != nil {
		return "", err
	}
	return head, p.Committed(ctx)
}

// commitError is the error of a git that would not stage or commit. Its words tell the lane's owner what to mend: it
// is Invalid. Of a git that was killed the owner can mend nothing: it is Unavailable, and worth another try.
func (c checkout) commitError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	code := muster.Invalid
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == -1 {
		code = muster.Unavailable
	}
	return muster.Errorf(code, "the lane %s cannot be committed: %w", c.lane.Name, err)
}

// refusePaths refuses what the lane's commits must not bring: files of the team's state, and links to repositories that
// .gitmodules does not name. It is asked after the commit, because the owner's own git may have committed them before.
func (c checkout) refusePaths(ctx context.Context, head string) error {
	// Also where the row has no base: without one a lane could bring what it likes.
	base := cmp.Or(git.MadeAt(c.repo, branchRef(c.lane)), c.lane.Base)
	if base == "" || head == base {
		return nil
	}
	raw, err := c.repo.Run(ctx, c.repo.CommonDir(), "diff-tree", "-r", "-z", "--raw", "--no-renames",
		"--ignore-submodules=none", base, head)
	if err != nil {
		return c.commitError(ctx, err)
	}
	dirs := paths.Excluded
	// The user may have lanes made elsewhere in the repository.
	rel, err := filepath.Rel(c.repo.Root(), filepath.Dir(c.lane.Path))
	if err == nil && filepath.IsLocal(rel) && rel != "." {
		dirs = append(slices.Clip(dirs), "/"+filepath.ToSlash(rel)+"/")
	}
	// Each entry is two fields: ":OLDMODE NEWMODE OLDID NEWID STATUS" and the path. A link that the base has already is
	// no work of this lane, and whoever deletes a file of the state does no harm.
	var links, state []string
	for entry := range slices.Chunk(git.SplitNUL(raw), 2) {
		modes := strings.Fields(entry[0]) // the old one, the new one, ...
		if modes[1] == gitlink && modes[0] != ":"+gitlink {
			links = append(links, entry[1])
		}
		if modes[len(modes)-1] != "D" && paths.IsBelow(entry[1], dirs) {
			state = append(state, entry[1])
		}
	}
	if len(state) > 0 {
		return muster.Errorf(muster.Invalid, "the lane %s holds %s, which would land in the directories of the team's "+
			"state", c.lane.Name, text.List(state, maxRefused)).
			WithHint("git rm -r -f --ignore-unmatch %s",
				text.ShellQuote(path.Clean(strings.SplitN(state[0], "/", 2)[0])))
	}
	if len(links) == 0 {
		return nil
	}
	submodules, err := git.Submodules(ctx, c.repo, head)
	if err != nil {
		return err
	}
	inner := slices.DeleteFunc(links, func(link string) bool { return submodules[link] != "" })
	if len(inner) == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid,
		"the lane %s has committed the git repository in %s as a link: its files would not land",
		c.lane.Name, strings.Join(inner, ", ")).
		WithHint("git rm --cached %s, and remove its .git directory so that its files are the lane's",
			text.ShellQuote(path.Clean(inner[0])))
}
