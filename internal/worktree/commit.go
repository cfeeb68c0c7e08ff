package worktree

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

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
	lane, err := l.enter(ctx, name)
	if err == nil {
		// A git of a tool that was killed leaves its lock, with which every later git would fail.
		err = l.repo.AwaitWorktreeLock(ctx, lane.Path)
	}
	if err == nil {
		head, err = l.checkout(lane).commit(ctx, message)
	}
	// Nothing is written for the lanes without a merge, which are nearly all.
	if _, ok := lane.Extra[fieldConflicts]; ok && err == nil {
		// The merge is committed: what it left is of no interest any more.
		_, err = l.index.update(ctx, name, func(row *muster.Lane) error {
			clearField(row, fieldConflicts)
			return nil
		})
	}
	if err != nil {
		return "", false, err
	}
	// Where no log of git's confirms the base, the target decides: only the row says that there is no work.
	return head, head != lane.Base || git.MadeAt(l.repo, branchRef(lane)) == "", nil
}

// commit stages and commits everything, and returns the new HEAD.
func (c checkout) commit(ctx context.Context, message string) (head string, err error) {
	s := staging{checkout: c}
	found, err := s.look(ctx)
	if err != nil {
		return "", err
	}
	if open := c.openOf(found.unmerged); len(open) > 0 {
		return "", muster.Errorf(muster.Invalid, "the merge in lane %s is not resolved: %s",
			c.lane.Name, conflictList(open)).WithHint("edit these files until no conflict marker is left; " +
			"git add or git rm a file that is right as it is")
	}
	// All is staged before it is decided whether there is anything to commit: the owner may have staged, committed or
	// done neither.
	if err := s.stage(ctx, found); err != nil {
		return "", err
	}
	head, ok := c.commitIndex(ctx, message)
	if !ok {
		head, err = c.gitCommit(ctx, message)
	}
	if err != nil {
		return "", err
	}
	return head, c.refusePaths(ctx, head)
}

// commitIndex commits what is staged without the look at each file that git commit takes once more. ok is false where
// something is under way that the commit must end, and where a step fails: then git commit does it, or says why not.
func (c checkout) commitIndex(ctx context.Context, message string) (head string, ok bool) {
	branch := branchRef(c.lane)
	at, isKnown := c.repo.LinkedHead(c.lane.Path)
	begun, err := git.UnderWay(c.repo, c.lane.Path)
	if !isKnown || at != branch || begun != "" || err != nil {
		return "", false
	}
	before, err := c.repo.Ref(ctx, branch)
	if err != nil || before == "" {
		return "", false
	}
	was, err := c.repo.Tree(ctx, before)
	if err != nil {
		return "", false
	}
	tree, err := c.run(ctx, "write-tree")
	if tree = strings.TrimSpace(tree); err != nil || tree == was {
		return before, err == nil
	}
	head, err = c.repo.CommitTree(ctx, tree, []string{before}, message)
	if err != nil {
		return "", false
	}
	return head, c.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branch, New: head, Old: before}}) == nil
}

// gitCommit has git commit what is staged and end what is under way. It returns the new HEAD.
func (c checkout) gitCommit(ctx context.Context, message string) (head string, err error) {
	pending, err := c.isCommitPending(ctx)
	if err != nil {
		return "", err
	}
	// Hooks, signing and editors are the user's, and nobody is here to answer them. --allow-empty finishes a merge that
	// changes nothing.
	if pending {
		if _, err := c.repo.Do(ctx, git.Call{Dir: c.lane.Path, Stdin: message, Args: []string{"commit", "-q",
			"--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--allow-empty-message", "--allow-empty",
			"-F", "-"}}); err != nil {
			return "", c.commitError(ctx, err)
		}
	}
	return c.repo.ResolveIn(ctx, c.lane.Path, "HEAD")
}

// isCommitPending reports whether something is staged, or a merge is to be finished.
func (c checkout) isCommitPending(ctx context.Context) (pending bool, err error) {
	_, err = c.run(ctx, "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--")
	if git.ExitCode(err) == 1 {
		return true, nil
	}
	if err != nil {
		return pending, c.commitError(ctx, err)
	}
	merging, err := c.mergeHead(ctx)
	return merging != "", err
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

// refusePaths refuses what the lane's commits must not bring: files of the team's state, and links to repositories
// inside the lane, which the owner's own git has committed. A submodule that .gitmodules names is intended. It is asked
// after the commit, because the owner's own git may have committed such a path long before.
func (c checkout) refusePaths(ctx context.Context, head string) error {
	// Also where the row has no base: without one a lane could bring what it likes.
	base := cmp.Or(git.MadeAt(c.repo, branchRef(c.lane)), c.lane.Base)
	if base == "" || head == base {
		return nil
	}
	raw, err := c.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", base, head)
	if err != nil {
		return c.commitError(ctx, err)
	}
	// Each entry is two fields: ":OLDMODE NEWMODE OLDID NEWID STATUS" and the path. A link that the base has already is
	// no work of this lane, and whoever deletes a file of the state does no harm.
	var links, state []string
	for entry := range slices.Chunk(git.SplitNUL(raw), 2) {
		modes := strings.Fields(entry[0]) // the old one, the new one, ...
		if modes[1] == gitlink && modes[0] != ":"+gitlink {
			links = append(links, entry[1])
		}
		if modes[len(modes)-1] != "D" && c.isState(entry[1]) {
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
	submodules, err := c.moduleNames(ctx)
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

// isState reports whether a file that git names lies in a directory of the team's state, on any file system: one may
// not tell upper from lower case, drop dots and blanks at the end of a name, or overlook characters without a shape.
func (c checkout) isState(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	first = foldedName(first)
	if slices.Contains(paths.Excluded, "/"+first+"/") {
		return true
	}
	// The user may have lanes made elsewhere in the repository.
	rel, err := filepath.Rel(c.repo.Root(), filepath.Dir(c.lane.Path))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return false
	}
	lanes := filepath.ToSlash(rel)
	return foldedName(file) == foldedName(lanes) || strings.HasPrefix(foldedName(file), foldedName(lanes)+"/")
}

// foldedName returns a name as the least exact file system takes it.
func foldedName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // format characters, such as a joiner of width zero
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
	return strings.TrimRight(name, ". ")
}
