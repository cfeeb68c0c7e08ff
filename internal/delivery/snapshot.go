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

// copyIndex copies the index with its time: git compares the content of a file that was written in the second of its
// index. An index that is missing is an empty one to git.
func (x staging) copyIndex() error {
	from := filepath.Join(cmp.Or(git.DirOf(x.dir), x.repo.CommonDir()), "index")
	info, err := os.Stat(from) // before it is read: one that is written meanwhile is younger, which is no harm
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := durable.ReadRegular(from, git.MaxFile)
	if err != nil {
		return err
	}
	to := filepath.Join(x.tmp, "index")
	return errors.Join(os.WriteFile(to, data, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// add lets the user's git stage the files. No hook of theirs is for that, and no file of a split index is written
// beside their own.
func (x staging) add(ctx context.Context, files []string) error {
	names := filepath.Join(x.tmp, "files")
	if err := os.WriteFile(names, []byte(strings.Join(files, "\x00")), 0o600); err != nil {
		return err
	}
	env := append(x.env(), "GIT_LITERAL_PATHSPECS=1", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0="+os.DevNull,
		"GIT_CONFIG_KEY_1=core.splitIndex", "GIT_CONFIG_VALUE_1=false")
	_, err := git.RunAsUser(ctx, x.dir, env, "add", "-A", "--sparse", "--pathspec-from-file="+names,
		"--pathspec-file-nul")
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

// setAside stashes the uncommitted files that the work has too: those that are as the snapshot has them. It does
// nothing if others are in the way of a merge of the commit tip. stash is "" where there is none to set aside. From
// here on a failure must unstash it.
//
// The user's git decides in any case whether it merges. A process that dies meanwhile leaves the stash to the user, and
// the files are on the target too.
func (c Checkout) setAside(ctx context.Context, tip string) (stash string, err error) {
	if c.Snapshot == "" {
		return "", nil
	}
	same, edited, err := c.sinceSnapshot(ctx, tip)
	if err != nil || len(same) == 0 || len(edited) > 0 {
		return "", err
	}
	// git stash names no file that is neither in the index nor there. One whose deletion is staged is in HEAD.
	staged, err := c.notInIndex(ctx, same)
	if err == nil {
		err = c.asUser(ctx, staged, "reset", "-q")
	}
	if err != nil {
		return "", err
	}
	before := c.stashed(ctx)
	err = c.asUser(ctx, same, "stash", "push", "-q", "--include-untracked", "-m",
		"muster merge: the snapshot has it too")
	if stash = c.stashed(ctx); stash == before {
		return "", err
	}
	late := context.WithoutCancel(ctx)
	if err != nil {
		// It was made, and the files may be there still.
		again, edited, errLook := c.sinceSnapshot(late, tip)
		if errLook == nil && len(again) == len(same) && len(edited) == 0 {
			return "", errors.Join(err, c.dropStash(late, stash))
		}
		return "", errors.Join(err, c.unstash(late, stash))
	}
	// What was stashed is compared once more: a file may have been written just now.
	trees := []string{stash}
	if untracked, errNone := c.repo.ResolveIn(ctx, c.dir, stash+"^3"); errNone == nil {
		trees = append(trees, untracked)
	}
	edited, err = c.unlike(ctx, same, trees...)
	if err == nil && len(edited) > 0 {
		err = muster.Errorf(muster.Held, "%s was changed just now, so %s stays as it is", list(edited), c.Branch).
			WithHint("muster merge")
	}
	if err != nil {
		return "", errors.Join(err, c.unstash(late, stash))
	}
	return stash, nil
}

// asUser lets the user's git do something with these files. It does nothing without any.
func (c Checkout) asUser(ctx context.Context, files []string, args ...string) error {
	if len(files) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp("", "muster-merge-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	names := filepath.Join(tmp, "files")
	if err := os.WriteFile(names, []byte(strings.Join(files, "\x00")), 0o600); err != nil {
		return err
	}
	_, err = git.RunAsUser(ctx, c.dir, []string{"GIT_LITERAL_PATHSPECS=1"},
		append(args, "--pathspec-from-file="+names, "--pathspec-file-nul")...)
	return err
}

// notInIndex returns those of the files that are neither in the index nor in the checkout.
func (c Checkout) notInIndex(ctx context.Context, files []string) ([]string, error) {
	missing := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		return !durable.IsMissing(filepath.Join(c.dir, filepath.FromSlash(file)))
	})
	if len(missing) == 0 {
		return nil, nil
	}
	out, err := c.repo.Run(ctx, c.dir, "ls-files", "-z")
	known := map[string]bool{}
	for _, file := range git.SplitNUL(out) {
		known[file] = true
	}
	return slices.DeleteFunc(missing, func(file string) bool { return known[file] }), err
}

// stashed returns the newest stash, "" where there is none.
func (c Checkout) stashed(ctx context.Context) string {
	at, _ := c.repo.Ref(ctx, "refs/stash") // without an answer nothing is taken for a stash of this merge
	return at
}

// unstash brings back what setAside has stashed.
func (c Checkout) unstash(ctx context.Context, stash string) error {
	if stash == "" {
		return nil
	}
	if c.stashed(ctx) == stash {
		// Where other changes are staged, what was staged here comes back unstaged.
		for _, args := range [][]string{{"stash", "pop", "-q", "--index"}, {"stash", "pop", "-q"}} {
			if _, err := git.RunAsUser(ctx, c.dir, nil, args...); err == nil {
				return nil
			}
		}
	}
	return muster.Errorf(muster.Unavailable, "your uncommitted changes are in the stash %.7s", stash).
		WithHint("git stash apply %.12s", stash)
}

// dropStash drops what setAside has stashed, unless another stash has been made on top of it.
func (c Checkout) dropStash(ctx context.Context, stash string) error {
	if stash == "" || c.stashed(ctx) != stash {
		return nil
	}
	_, err := git.RunAsUser(ctx, c.dir, nil, "stash", "drop", "-q")
	return err
}

// sinceSnapshot looks at the uncommitted files that the snapshot or a merge of the commit tip changes. same are those
// that are as the snapshot has them, in content and mode; edited are the others, if they would be overwritten. Without
// a snapshot none is the same.
func (c Checkout) sinceSnapshot(ctx context.Context, tip string) (same, edited []string, err error) {
	all, _, err1 := c.uncommitted(ctx)
	changed, err2 := c.changed(ctx, c.Head, tip)
	if err := errors.Join(err1, err2); err != nil || c.Snapshot == "" {
		return nil, both(all, changed), err
	}
	// What the work has taken back is in the snapshot only.
	before, err := c.changed(ctx, c.Snapshot+"^1", c.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	files := both(all, append(before, changed...))
	tree, err := c.inCopy(ctx, func(staging) ([]string, error) {
		staged, err := c.notInIndex(ctx, files)
		return without(files, staged), err
	})
	if err != nil {
		return nil, nil, err
	}
	unlike, err := c.unlike(ctx, files, tree)
	return without(files, unlike), both(unlike, changed), err
}

// without returns the files that are not in the other list.
func without(files, others []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool { return slices.Contains(others, file) })
}

// unlike returns those of the files that none of the trees has as the snapshot has them.
func (c Checkout) unlike(ctx context.Context, files []string, trees ...string) ([]string, error) {
	for _, tree := range trees {
		differ, err := c.changed(ctx, c.Snapshot, tree)
		if err != nil {
			return nil, err
		}
		files = both(files, differ)
	}
	return files, nil
}
