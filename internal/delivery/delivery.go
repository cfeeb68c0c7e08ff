// Package delivery takes what a team has landed from its target to the branch that the user is on, and what the user
// has not committed to the team.
//
// Merge (merge.go) does what the user would do by hand: a fast-forward where that is possible, else a merge commit, by
// their own git with their own identity, hooks and signing key. It is the only code of muster that changes the user's
// checkout, and it runs only when they have asked for it.
//
// The package keeps these invariants:
//
//   - Nothing of the user's is lost. Git decides whether uncommitted changes are in the way, and a merge that would
//     have conflicts is refused before anything is touched. Changes that the work has as well, because it began from a
//     snapshot of them, become a commit first.
//   - A snapshot (snapshot.go) changes nothing of the user's.
//   - Nothing is left half done. A merge that git could not finish is aborted.
//   - Each call can be repeated: what is on the branch already is not brought again.
//
// # The steps of a merge
//
//  1. Open looks at the checkout: which branch it has, and whether something of several steps is under way.
//  2. What the branch has already ends the merge. After a squash or a rebase only the trees tell.
//  3. Where both have commits, they are merged in memory. Conflicts end the merge here.
//  4. Where the checkout still has the snapshot of the run, the user's git makes it a commit of the branch, by a
//     mixed reset, which changes no file.
//  5. The user's git merges in their checkout. It refuses where uncommitted changes are in the way.
//  6. What it has begun and could not finish is aborted, and step 4 is undone: files, branch and index are as before.
//     Then the reason is looked for: git's own words are for people, so the files are compared, and no text of git is
//     matched. A merge that is done when it is interrupted, in a hook for example, counts as done.
//
// A process that dies before step 4 has changed nothing. One that dies between 4 and 5 leaves the branch at the
// snapshot, from which the next call goes on. One that dies later leaves what git leaves at that moment.
//
// Which commits have landed is for package landing, and what the tasks are for package board.
package delivery

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/text"
	"muster/internal/worktree"
)

// maxNamed is how many files and commits a message names.
const maxNamed = 5

// Checkout is the checkout of the user's that work is taken to.
type Checkout struct {
	repo   *git.Repo
	dir    string // its top level
	Branch string // without refs/heads/
	Head   string // the commit that the branch is at
	// Snapshot is a commit of the target with what was uncommitted here when a run began, and which the branch lacks.
	// "": there is none.
	Snapshot string
}

// Open returns the checkout from which the repository was opened: the main one, or a linked worktree. It refuses one
// that no branch is checked out in, that is the team's, or in which a merge or the like is under way.
func Open(ctx context.Context, repo *git.Repo, target string) (c Checkout, err error) {
	return open(ctx, repo, cmp.Or(repo.Linked(), repo.Root()), target)
}

// open is Open for the checkout at dir.
func open(ctx context.Context, repo *git.Repo, dir, target string) (c Checkout, err error) {
	c = Checkout{repo: repo, dir: dir}
	out, err := repo.Run(ctx, c.dir, "symbolic-ref", "-q", "HEAD")
	if git.ExitCode(err) == 1 {
		return c, muster.Errorf(muster.Invalid, "no branch is checked out here (HEAD is detached), so there is none "+
			"to take the work to").WithHint("git switch BRANCH")
	}
	if err != nil {
		return c, err
	}
	ref := strings.TrimSpace(out)
	c.Branch = strings.TrimPrefix(ref, "refs/heads/")
	switch {
	case c.Branch == target:
		return c, muster.Errorf(muster.Invalid, "%s is checked out here, and it is the branch on which work lands",
			target).WithHint("git switch BRANCH, then muster merge")
	case strings.HasPrefix(ref, worktree.BranchPrefix):
		return c, muster.Errorf(muster.Invalid, "%s is a lane of the team", c.dir).
			WithHint("cd %s", text.ShellQuote(repo.Root()))
	}
	if operation := git.UnderWay(repo, c.dir); operation != "" {
		return c, muster.Errorf(muster.Held, "a %s is under way in %s", operation, c.dir).
			WithHint("finish it:   git %[1]s --continue\nor undo it:  git %[1]s --abort", operation)
	}
	c.Head, err = repo.ResolveIn(ctx, c.dir, "HEAD")
	return c, err
}

// uncommitted returns the paths of the checkout that have something uncommitted, and those of them that are staged.
func (c Checkout) uncommitted(ctx context.Context) (all, staged []string, err error) {
	out, err := c.repo.Run(ctx, c.dir, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
	for _, entry := range git.SplitNUL(out) {
		if len(entry) < 4 {
			continue
		}
		path := entry[3:] // after the two letters of its status
		all = append(all, path)
		if entry[0] != ' ' && entry[0] != '?' {
			staged = append(staged, path)
		}
	}
	return all, staged, err
}

// changed returns the paths that differ between two trees.
func (c Checkout) changed(ctx context.Context, from, to string, options ...string) ([]string, error) {
	args := append([]string{"diff-tree", "-r", "-z", "--no-renames", "--name-only", "--ignore-submodules=none"},
		options...)
	out, err := c.repo.Run(ctx, c.repo.CommonDir(), append(args, from, to)...)
	return git.SplitNUL(out), err
}

func setOf(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, path := range paths {
		set[path] = true
	}
	return set
}

// both returns the paths of a that are in b too.
func both(a, b []string) []string {
	inB := setOf(b)
	return slices.DeleteFunc(slices.Clone(a), func(path string) bool { return !inB[path] })
}

// list names files in a sentence.
func list(files []string) string { return text.List(files, maxNamed) }
