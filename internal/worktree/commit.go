package worktree

import (
	"context"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
)

// Commit commits everything uncommitted in the lane as the runtime's identity, except ignored files, and finishes a
// merge that the runtime began. It returns the lane's head; changed reports whether that differs from the lane's base.
// It removes a lock that a killed git left in the lane. Errors: Invalid (conflicts that are not resolved, repositories
// inside the lane, a lane that is not on its branch), Unavailable (git was killed).
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
	return head, head != lane.Base, nil
}

// commit stages and commits everything, and returns the new HEAD.
func (c checkout) commit(ctx context.Context, message string) (head string, err error) {
	open, err := c.unresolved(ctx)
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
	if err := c.stage(ctx, nil); err != nil {
		return "", err
	}
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
	if head, err = c.repo.ResolveIn(ctx, c.lane.Path, "HEAD"); err != nil {
		return "", err
	}
	// After the commit, because the owner's own git may have committed such a link long before.
	return head, c.refuseInnerRepositories(ctx, head)
}

// isCommitPending reports whether something is staged, or a merge is to be finished.
func (c checkout) isCommitPending(ctx context.Context) (pending bool, err error) {
	_, err = c.run(ctx, "diff", "--cached", "--quiet", "--ignore-submodules=none")
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

// gitlink is the mode of a tree entry that names a commit of another repository.
const gitlink = "160000"

// stage adds everything in the lane to its git index, or to another one that env names. It refuses a lane with a git
// repository of its own inside: git would record a link to it, and its files would not land.
func (c checkout) stage(ctx context.Context, env []string) error {
	run := func(args ...string) (string, error) {
		out, err := c.repo.Do(ctx, git.Call{Dir: c.lane.Path, Args: args, Env: env})
		if err != nil {
			return "", c.commitError(ctx, err)
		}
		return out, nil
	}
	// Ignored files are left out here and below: they never land and are not archived.
	untracked, err := run("ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	var inner []string
	for file := range strings.SplitSeq(untracked, "\x00") {
		if strings.HasSuffix(file, "/") { // git does not look into another repository
			inner = append(inner, strings.TrimSuffix(file, "/"))
		}
	}
	if len(inner) > 0 {
		return muster.Errorf(muster.Invalid,
			"the lane %s holds a git repository of its own in %s: its files would not land",
			c.lane.Name, strings.Join(inner, ", ")).
			WithHint("remove its .git directory so that its files are the lane's, or move it out of the lane")
	}
	staged, err := run("ls-files", "-z", "--stage")
	if err != nil {
		return err
	}
	// --sparse: a lane is as sparse as the user's checkout, and what is made outside of that lands too.
	args := []string{"add", "-A", "--sparse", "--", "."}
	for entry := range strings.SplitSeq(staged, "\x00") {
		// A submodule that is checked out here has a config of its own, which git would obey when it looks inside. So
		// submodules are committed as the owner staged them.
		mode, file, ok := cutEntry(entry)
		if ok && mode == gitlink && !isMissing(filepath.Join(c.lane.Path, filepath.FromSlash(file), ".git")) {
			args = append(args, ":(top,exclude,literal)"+file)
		}
	}
	_, err = run(args...)
	return err
}

// cutEntry reads a line of git ls-files --stage: "MODE ID STAGE\tFILE".
func cutEntry(entry string) (mode, file string, ok bool) {
	meta, file, ok := strings.Cut(entry, "\t")
	mode, _, _ = strings.Cut(meta, " ")
	return mode, file, ok
}

// refuseInnerRepositories refuses links to repositories inside the lane that the owner's own git has committed. A
// submodule that .gitmodules names is intended.
func (c checkout) refuseInnerRepositories(ctx context.Context, head string) error {
	if c.lane.Base == "" || head == c.lane.Base {
		return nil
	}
	out, err := c.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none",
		c.lane.Base, head)
	if err != nil {
		return c.commitError(ctx, err)
	}
	// Each entry is two fields: ":OLDMODE NEWMODE OLDID NEWID STATUS" and the path. A link that the base has already is
	// no work of this lane.
	var links []string
	for entry := range slices.Chunk(git.SplitNUL(out), 2) {
		modes := strings.Fields(entry[0]) // the old one, the new one, ...
		if modes[1] == gitlink && modes[0] != ":"+gitlink {
			links = append(links, entry[1])
		}
	}
	if len(links) == 0 {
		return nil
	}
	submodules, err := c.submodules(ctx)
	if err != nil {
		return err
	}
	inner := slices.DeleteFunc(links, func(link string) bool { return slices.Contains(submodules, link) })
	if len(inner) == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid,
		"the lane %s has committed the git repository in %s as a link: its files would not land",
		c.lane.Name, strings.Join(inner, ", ")).
		WithHint("git rm --cached %s, and remove its .git directory so that its files are the lane's",
			path.Clean(inner[0]))
}

// submodules returns the paths that the lane's .gitmodules names.
func (c checkout) submodules(ctx context.Context) ([]string, error) {
	file := filepath.Join(c.lane.Path, ".gitmodules")
	if isMissing(file) {
		return nil, nil
	}
	call := git.Call{Dir: c.lane.Path, Args: []string{"-f", file}}
	settings, err := c.repo.Config(ctx, call, `^submodule\..*\.path$`)
	if err != nil {
		return nil, c.commitError(ctx, err)
	}
	return slices.Collect(maps.Values(settings)), nil
}
