package delivery

import (
	"context"
	"errors"
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

// Uncommitted returns the paths of the checkout that a snapshot would have otherwise than HEAD, sorted.
func Uncommitted(ctx context.Context, repo *git.Repo) (files []string, err error) {
	c := Checkout{repo: repo, dir: repo.Here()}
	status, err := repo.Run(ctx, repo.Here(), "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal",
		"--ignore-submodules=dirty")
	if err != nil || status == "" { // usually nothing is uncommitted, and this is the only call of git
		return nil, err
	}
	for _, entry := range git.SplitNUL(status) { // XY PATH, where X says what is staged
		if len(entry) > 3 && !strings.ContainsAny(entry[:1], " ?") {
			files = append(files, entry[3:])
		}
	}
	err = c.withCopy(func(x staging) error {
		found, err := x.look(ctx)
		files = slices.Concat(files, found.files, found.inner)
		return err
	})
	slices.Sort(files)
	return slices.Compact(files), err
}

// MaySnapshot refuses, with what to do, a checkout of which no snapshot can be made at this moment: one in which a
// merge or the like is under way, and one with conflicts. It changes nothing.
func MaySnapshot(ctx context.Context, repo *git.Repo) error {
	if operation := git.UnderWay(repo, repo.Here()); operation != "" {
		return muster.Errorf(muster.Held, "a %s is under way in %s, so no snapshot of it is made", operation,
			repo.Here()).WithHint("finish it:   git %[1]s --continue\nor undo it:  git %[1]s --abort\n%s", operation,
			withoutChanges)
	}
	out, err := repo.Run(ctx, repo.Here(), "diff", "--name-only", "--diff-filter=U", "-z")
	if unmerged := git.SplitNUL(out); err == nil && len(unmerged) > 0 {
		return muster.Errorf(muster.Held, "the conflicts in %s are not resolved, so no snapshot is made",
			list(unmerged)).WithHint("resolve them, and git add the files\n%s", withoutChanges)
	}
	return err
}

// Snapshot returns a tree of all that the checkout holds, without what git ignores, what builds leave, and the
// team's own state. Errors: those of MaySnapshot, and Invalid for what a snapshot would lack.
func Snapshot(ctx context.Context, repo *git.Repo) (tree string, err error) {
	if err := MaySnapshot(ctx, repo); err != nil {
		return "", err
	}
	c := Checkout{repo: repo, dir: repo.Here()}
	for range maxTries {
		tree, err = c.inCopy(ctx, func(x staging) ([]string, error) { return x.all(ctx) })
		if _, isGit := errors.AsType[*git.ExitError](err); !isGit || ctx.Err() != nil {
			return tree, err
		}
	}
	return "", muster.Errorf(muster.Unavailable, "git cannot make a snapshot: %w", err).
		WithHint("git add -A --dry-run says what it cannot read\n%s", withoutChanges)
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
	size, largest := git.SizeOf(x.dir, files)
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
