package delivery

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/leftovers"
	"muster/internal/paths"
	"muster/internal/text"
)

// A snapshot has what the user has not committed: tracked and untracked files, and no ignored ones. The user's own git
// stages them, so that the content is what they would commit, in a copy of the index: their index, files, branch and
// stash stay as they are. What a snapshot would lack is refused.

// withoutChanges is the way out of each refusal.
const withoutChanges = "or begin from HEAD:  --without-changes"

// maxTries is how often a snapshot is tried: what was listed may be gone when it is staged, while a build is at work.
const maxTries = 3

// Uncommitted returns the paths of the main checkout that a snapshot would have otherwise than HEAD, sorted.
func Uncommitted(ctx context.Context, repo *git.Repo) (files []string, err error) {
	c := Checkout{repo: repo, dir: repo.Root()}
	staged, err := repo.Run(ctx, repo.Root(), "diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
	if err != nil {
		return nil, err
	}
	err = c.withCopy(func(x staging) error {
		found, err := x.look(ctx)
		files = slices.Concat(git.SplitNUL(staged), found.files, found.inner)
		return err
	})
	slices.Sort(files)
	return slices.Compact(files), err
}

// MaySnapshot refuses, with what to do, a checkout of which no snapshot can be made at this moment: one in which a
// merge or the like is under way, one with conflicts, and a linked worktree, because runs begin at the HEAD of the main
// one. It changes nothing.
func MaySnapshot(ctx context.Context, repo *git.Repo) error {
	if repo.Linked() != "" {
		return muster.Errorf(muster.Invalid, "a snapshot is made of the main checkout, and this is a linked worktree").
			WithHint("cd %s\n%s", text.ShellQuote(repo.Root()), withoutChanges)
	}
	if operation := git.UnderWay(repo, repo.Root()); operation != "" {
		return muster.Errorf(muster.Held, "a %s is under way in %s, so no snapshot of it is made", operation,
			repo.Root()).WithHint("finish it:   git %[1]s --continue\nor undo it:  git %[1]s --abort\n%s", operation,
			withoutChanges)
	}
	out, err := repo.Run(ctx, repo.Root(), "diff", "--name-only", "--diff-filter=U", "-z")
	if unmerged := git.SplitNUL(out); err == nil && len(unmerged) > 0 {
		return muster.Errorf(muster.Held, "the conflicts in %s are not resolved, so no snapshot is made",
			list(unmerged)).WithHint("resolve them, and git add the files\n%s", withoutChanges)
	}
	return err
}

// Snapshot returns a tree of all that the main checkout holds, without what git ignores, what builds leave, and the
// team's own state. Errors: those of MaySnapshot, and Invalid for what a snapshot would lack.
func Snapshot(ctx context.Context, repo *git.Repo) (tree string, err error) {
	if err := MaySnapshot(ctx, repo); err != nil {
		return "", err
	}
	c := Checkout{repo: repo, dir: repo.Root()}
	for range maxTries {
		tree, err = c.inCopy(ctx, func(x staging) ([]string, error) { return x.all(ctx) })
		if _, isGit := errors.AsType[*git.ExitError](err); !isGit || ctx.Err() != nil {
			return tree, err
		}
	}
	return "", muster.Errorf(muster.Unavailable, "git cannot make a snapshot: %w", err).
		WithHint("git add -A --dry-run says what it cannot read\n%s", withoutChanges)
}

// staging is a copy of the index of a checkout.
type staging struct {
	Checkout
	tmp string // a directory with the copy
}

func (x staging) env() []string { return []string{"GIT_INDEX_FILE=" + filepath.Join(x.tmp, "index")} }

// withCopy calls do with a copy of the index.
func (c Checkout) withCopy(do func(staging) error) (err error) {
	x := staging{Checkout: c}
	if x.tmp, err = os.MkdirTemp("", "muster-snapshot-"); err != nil {
		return err
	}
	defer os.RemoveAll(x.tmp)
	if err := x.copyIndex(); err != nil {
		return err
	}
	return do(x)
}

// inCopy stages the files that choose returns in a copy of the index, and returns the tree.
func (c Checkout) inCopy(ctx context.Context, choose func(staging) ([]string, error)) (tree string, err error) {
	err = c.withCopy(func(x staging) error {
		files, err := choose(x)
		if err == nil && len(files) > 0 {
			err = x.add(ctx, files)
		}
		if err != nil {
			return err
		}
		tree, err = c.repo.Do(ctx, git.Call{Dir: c.dir, Env: x.env(), Args: []string{"write-tree"}})
		return err
	})
	return strings.TrimSpace(tree), err
}

// index returns the path of the user's index.
func (c Checkout) index() string {
	return filepath.Join(cmp.Or(git.DirOf(c.dir), c.repo.CommonDir()), "index")
}

// copyIndex copies the index. An index that is missing is an empty one to git.
func (x staging) copyIndex() error {
	err := copyFile(x.index(), filepath.Join(x.tmp, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// restoreIndex puts the copy in the place of the index. The lock is that of git.
func (x staging) restoreIndex() error {
	saved, lock := filepath.Join(x.tmp, "index"), x.index()+".lock"
	if durable.IsMissing(saved) {
		return os.Remove(x.index())
	}
	if err := copyFile(saved, lock); err != nil {
		return err
	}
	return os.Rename(lock, x.index())
}

// copyFile makes a copy with the time of the file: git compares the content of a file that was written in the second of
// its index. One that is written meanwhile is younger than the copy, which is no harm.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := durable.ReadRegular(from, git.MaxFile)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close(), os.Chmod(to, info.Mode().Perm()),
		os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// add stages the files. git add -f, which a tracked file below an ignored directory needs, would also stage what is
// ignored in a directory that has replaced a file.
func (x staging) add(ctx context.Context, files []string) error {
	var gone, there []string
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(x.dir, filepath.FromSlash(file)))
		if err != nil || info.IsDir() {
			gone = append(gone, file)
		} else {
			there = append(there, file)
		}
	}
	if err := x.asUser(ctx, gone, "add", "-u", "--sparse"); err != nil {
		return err
	}
	return x.asUser(ctx, there, "add", "-A", "-f", "--sparse")
}

// asUser lets the user's git do something with the files in the copy of the index, without their hooks, and without a
// file of a split index beside their own. It does nothing without files.
func (x staging) asUser(ctx context.Context, files []string, args ...string) error {
	if len(files) == 0 {
		return nil
	}
	names := filepath.Join(x.tmp, "files")
	if err := os.WriteFile(names, []byte(strings.Join(files, "\x00")), 0o600); err != nil {
		return err
	}
	env := append(x.env(), "GIT_LITERAL_PATHSPECS=1", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0="+os.DevNull,
		"GIT_CONFIG_KEY_1=core.splitIndex", "GIT_CONFIG_VALUE_1=false")
	_, err := git.RunAsUser(ctx, x.dir, env, append(args, "--pathspec-from-file="+names, "--pathspec-file-nul")...)
	return err
}

// list returns what git ls-files prints of the copy. isWhole is false where git could not read everything.
func (x staging) list(ctx context.Context, env []string, args ...string) (files []string, isWhole bool, err error) {
	var warned bool
	out, err := x.repo.Do(ctx, git.Call{Dir: x.dir, Env: append(x.env(), env...), Warned: &warned,
		Args: append([]string{"ls-files", "-z"}, args...)})
	return git.SplitNUL(out), !warned, err
}

// all returns what is not staged: changed, deleted and new files. It refuses what a snapshot would lack.
func (x staging) all(ctx context.Context) (files []string, err error) {
	found, err := x.look(ctx)
	if err != nil {
		return nil, err
	}
	if !found.isWhole {
		return nil, muster.Errorf(muster.Invalid, "git cannot read all of %s, so a snapshot would lack some of it",
			x.dir).WithHint("git status says what\n%s", withoutChanges)
	}
	if len(found.inner) > 0 {
		return nil, muster.Errorf(muster.Invalid, "%s has a git repository of its own, so a snapshot would lack its "+
			"files", list(found.inner)).WithHint("name it in .gitignore, or move it elsewhere\n%s", withoutChanges)
	}
	if err := x.refuseLarge(found.files); err != nil {
		return nil, err
	}
	return found.files, x.refuseSubmodules(ctx)
}

// unstaged is what a checkout has that its index has not.
type unstaged struct {
	files   []string // changed, deleted and new
	inner   []string // git repositories that are no submodules
	isWhole bool     // git could read everything
}

// look lists what is not staged, without what git ignores, what builds leave, and the team's own state.
func (x staging) look(ctx context.Context) (found unstaged, err error) {
	tracked, _, err := x.list(ctx, nil, append([]string{"--"}, leftovers.Pathspecs()...)...)
	if err != nil {
		return found, err
	}
	// What the project and the user ignore, or take back, is stronger than these lines.
	ignored := filepath.Join(x.tmp, "ignored")
	lines := append(slices.Clone(paths.Excluded), leftovers.Patterns(tracked)...)
	if err := os.WriteFile(ignored, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return found, err
	}
	listed, isWhole, err := x.list(ctx, nil, "-t", "--others", "--modified", "--exclude-from="+ignored,
		"--exclude-standard")
	if err != nil {
		return found, err
	}
	var untracked []string
	for _, entry := range listed {
		file, isNew := strings.CutPrefix(entry, "? ")
		dir, isInner := strings.CutSuffix(file, "/")
		switch {
		case isNew && isInner: // git does not look into another repository
			found.inner = append(found.inner, dir)
		case isNew:
			untracked = append(untracked, file)
		default:
			found.files = append(found.files, entry[min(len(entry), 2):])
		}
	}
	untracked, err = x.withoutMarked(ctx, untracked)
	found.files, found.isWhole = append(found.files, untracked...), isWhole
	return found, err
}

// withoutMarked leaves out untracked files in directories that a program has made, unless git tracks files there.
func (x staging) withoutMarked(ctx context.Context, untracked []string) ([]string, error) {
	for _, dir := range leftovers.Marked(untracked, func(file string) ([]byte, error) {
		return durable.ReadBelow(x.dir, filepath.Join(x.dir, filepath.FromSlash(file)), git.MaxFile)
	}) {
		tracked, _, err := x.list(ctx, []string{"GIT_LITERAL_PATHSPECS=1"}, "--", dir)
		if err != nil {
			return nil, err
		}
		if len(tracked) == 0 {
			untracked = slices.DeleteFunc(untracked, func(file string) bool { return strings.HasPrefix(file, dir+"/") })
		}
	}
	return untracked, nil
}

// refuseLarge refuses more than can land at once, before git reads it.
func (x staging) refuseLarge(files []string) error {
	size, largest, most := int64(0), "", int64(0)
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(x.dir, filepath.FromSlash(file)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if size += info.Size(); info.Size() > most {
			largest, most = file, info.Size()
		}
	}
	if size <= git.MaxUnpacked {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the uncommitted files have %d MB, the largest of them is %s: a snapshot has "+
		"at most %d MB", size>>20, text.OneLine(largest), git.MaxUnpacked>>20).
		WithHint("what should not land belongs into .gitignore\n%s", withoutChanges)
}

// refuseSubmodules refuses submodules with something uncommitted, which no commit of this repository can have.
func (x staging) refuseSubmodules(ctx context.Context) error {
	if durable.IsMissing(filepath.Join(x.dir, ".gitmodules")) {
		return nil
	}
	out, err := git.RunAsUser(ctx, x.dir, x.env(), "status", "--porcelain=v2", "-z", "--no-renames",
		"--untracked-files=no", "--ignore-submodules=none")
	if err != nil {
		return err
	}
	var changed []string
	for _, entry := range git.SplitNUL(out) {
		// 1 XY SUB MODES... IDS... PATH, where SUB is "SCMU" with dots for what does not hold.
		f := strings.SplitN(entry, " ", 9)
		if len(f) == 9 && strings.HasPrefix(f[2], "S") && strings.ContainsAny(f[2], "MU") {
			changed = append(changed, f[8])
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid, "there are uncommitted changes in the submodule %s, which a snapshot would "+
		"lack", list(changed)).WithHint("commit them there\n%s", withoutChanges)
}

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

// IsSnapshot reports whether a snapshot of the main checkout would be the commit.
func IsSnapshot(ctx context.Context, repo *git.Repo, commit string) (bool, error) {
	c := Checkout{repo: repo, dir: repo.Root()}
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
// a copy. Files that somebody has changed meanwhile stay, and then nothing is put back.
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
