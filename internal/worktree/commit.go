package worktree

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/git"
)

// Commit commits everything uncommitted in the lane as the runtime's identity, ignored files apart, and finishes a merge
// of the runtime's. It returns the lane's head; changed reports whether that is anything but the lane's base.
// A lock of git's that stays in the lane is a killed git's and removed. Errors: Invalid (files of a merge that are not
// resolved, repositories inside the lane, a lane that is not on its branch), Unavailable (git was killed).
func (l *Lanes) Commit(ctx context.Context, name muster.Name, message string) (head string, changed bool, err error) {
	lane, err := l.enter(ctx, name)
	if err != nil {
		return "", false, err
	}
	if err := l.repo.AwaitWorktreeLock(ctx, lane.Path); err != nil { // that a killed git left
		return "", false, err
	}
	open, err := l.unresolved(ctx, lane)
	if err != nil {
		return "", false, err
	}
	if len(open) > 0 {
		return "", false, muster.Errorf(muster.Invalid, "the merge in lane %s is not resolved: %s", name, places(open)).
			WithHint("edit these files until no conflict marker is left; git add or git rm a file that is right as it is")
	}
	if err := l.stage(ctx, lane, nil); err != nil {
		return "", false, err
	}
	pending, err := l.pending(ctx, lane)
	if err != nil {
		return "", false, err
	}
	if pending {
		if _, err := l.repo.Do(ctx, git.Call{Dir: lane.Path, Stdin: message, Args: []string{"commit", "-q", "--no-verify", "--no-gpg-sign",
			"--cleanup=whitespace", "--allow-empty-message", "--allow-empty", "-F", "-"}}); err != nil {
			return "", false, l.unclean(ctx, lane, err)
		}
	}
	if head, err = l.repo.ResolveIn(ctx, lane.Path, "HEAD"); err != nil {
		return "", false, err
	}
	if err := l.noGitlinks(ctx, lane, head); err != nil {
		return "", false, err
	}
	if _, had := lane.Extra[fieldConflicts]; had {
		if _, err := l.change(ctx, name, func(row *muster.Lane) error {
			clearField(row, fieldConflicts)
			return nil
		}); err != nil {
			return "", false, err
		}
	}
	return head, head != lane.Base, nil
}

// unclean is the error of a git that would not stage or commit: its words tell the lane's owner what to mend. One that was
// killed says nothing that the owner could mend: Unavailable.
func (l *Lanes) unclean(ctx context.Context, lane muster.Lane, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == -1 {
		return muster.Errorf(muster.Unavailable, "the lane %s cannot be committed: %w", lane.Name, err)
	}
	return muster.Errorf(muster.Invalid, "the lane %s cannot be committed: %w", lane.Name, err)
}

// stage adds everything to the index: the lane's own, or another one that env names.
func (l *Lanes) stage(ctx context.Context, lane muster.Lane, env []string) error {
	run := func(args ...string) (string, error) {
		out, err := l.repo.Do(ctx, git.Call{Dir: lane.Path, Args: args, Env: env})
		if err != nil {
			return "", l.unclean(ctx, lane, err)
		}
		return out, nil
	}
	out, err := run("ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	var inner []string
	for file := range strings.SplitSeq(out, "\x00") {
		if strings.HasSuffix(file, "/") { // git does not look into another repository
			inner = append(inner, strings.TrimSuffix(file, "/"))
		}
	}
	if len(inner) > 0 {
		return innerRepository(lane, inner)
	}
	// A submodule that is checked out here has a config of its own, which git would obey when it looks inside: what
	// the runtime commits leaves submodules as the owner staged them.
	if out, err = run("ls-files", "-z", "--stage"); err != nil {
		return err
	}
	args := []string{"add", "-A", "--sparse", "--", "."} // a lane is as sparse as the user's checkout: what was made outside lands too
	for entry := range strings.SplitSeq(out, "\x00") {
		mode, file, ok := cutEntry(entry)
		if ok && mode == gitlink && !gone(filepath.Join(lane.Path, filepath.FromSlash(file), ".git")) {
			args = append(args, ":(top,exclude,literal)"+file)
		}
	}
	_, err = run(args...)
	return err
}

// gitlink is the mode of an entry that stands for a commit of another repository.
const gitlink = "160000"

// cutEntry reads "MODE ID STAGE\tFILE".
func cutEntry(entry string) (mode, file string, ok bool) {
	meta, file, ok := strings.Cut(entry, "\t")
	mode, _, _ = strings.Cut(meta, " ")
	return mode, file, ok
}

func innerRepository(lane muster.Lane, inner []string) error {
	return muster.Errorf(muster.Invalid, "the lane %s holds a git repository of its own in %s: its files would not land", lane.Name, strings.Join(inner, ", ")).
		WithHint("remove its .git directory so that its files are the lane's, or move it out of the lane")
}

// noGitlinks refuses what an owner's own git committed of an inner repository. A submodule that .gitmodules names is
// meant.
func (l *Lanes) noGitlinks(ctx context.Context, lane muster.Lane, head string) error {
	if lane.Base == "" || head == lane.Base {
		return nil
	}
	out, err := l.repo.Run(ctx, lane.Path, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", lane.Base, head)
	if err != nil {
		return l.unclean(ctx, lane, err)
	}
	var meant map[string]bool
	var inner []string
	field := strings.Split(out, "\x00")
	for i := 0; i+1 < len(field); i += 2 {
		meta := strings.Fields(strings.TrimPrefix(field[i], ":")) // old mode, new mode, ...
		if len(meta) < 2 || meta[1] != gitlink || meta[0] == gitlink {
			continue
		}
		if meant == nil {
			meant, err = l.submodules(ctx, lane)
			if err != nil {
				return err
			}
		}
		if !meant[field[i+1]] {
			inner = append(inner, field[i+1])
		}
	}
	if len(inner) > 0 {
		return muster.Errorf(muster.Invalid, "the lane %s has committed the git repository in %s as a link: its files would not land", lane.Name, strings.Join(inner, ", ")).
			WithHint("git rm --cached %s, and remove its .git directory so that its files are the lane's", path.Clean(inner[0]))
	}
	return nil
}

// submodules are the paths that the lane's .gitmodules names.
func (l *Lanes) submodules(ctx context.Context, lane muster.Lane) (map[string]bool, error) {
	paths := map[string]bool{}
	file := filepath.Join(lane.Path, ".gitmodules")
	if gone(file) {
		return paths, nil
	}
	out, err := l.repo.Run(ctx, lane.Path, "config", "-z", "-f", file, "--get-regexp", `^submodule\..*\.path$`)
	if exit, ok := errors.AsType[*git.ExitError](err); err != nil && !(ok && exit.Code == 1) { // 1: names none
		return nil, l.unclean(ctx, lane, err)
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, p, ok := strings.Cut(entry, "\n"); ok {
			paths[p] = true
		}
	}
	return paths, nil
}

// pending reports whether there is something staged, or a merge to finish.
func (l *Lanes) pending(ctx context.Context, lane muster.Lane) (bool, error) {
	_, err := l.repo.Run(ctx, lane.Path, "diff", "--cached", "--quiet", "--ignore-submodules=none")
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return true, nil
	}
	if err != nil {
		return false, l.unclean(ctx, lane, err)
	}
	merging, err := l.merging(ctx, lane)
	return merging != "", err
}

// merging is the commit that a merge under way brings in, "" when there is none.
func (l *Lanes) merging(ctx context.Context, lane muster.Lane) (string, error) {
	commit, err := l.repo.ResolveIn(ctx, lane.Path, "MERGE_HEAD")
	return commit, ignoreAbsent(err)
}

// textOf is a file as its owner left it: a link is where it points to. False when there is none.
func textOf(file string) (data []byte, there bool) {
	info, err := os.Lstat(file)
	if err != nil || info.IsDir() {
		return nil, false
	}
	if info.Mode()&os.ModeSymlink != 0 {
		to, err := os.Readlink(file)
		return []byte(to), err == nil
	}
	data, err = os.ReadFile(file)
	return data, err == nil
}
