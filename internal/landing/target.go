package landing

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/worktree"
)

// usual is a branch's name about which git need not be asked: the team's own is one.
var usual = regexp.MustCompile(`^muster/[a-z0-9]+(-[a-z0-9]+)*$`)

// PrepareTarget makes the branch that work lands on ready for a run, and says in one line what there is to say about it.
//
// The team's own branch is made at HEAD; moved forward when it is behind; kept when it is ahead (landed work that was not taken yet);
// archived and moved when merging it into HEAD would change nothing (it was taken by squash or rebase); refused when it
// has truly diverged, unless fresh, which archives it. A branch that the user named is never moved here, only made if missing. Either is
// refused while it is checked out. A lock that a killed git left on it is removed. Errors: Held, Invalid, each with what to do.
func PrepareTarget(ctx context.Context, repo *git.Repo, branch string, userNamed, fresh bool) (note string, err error) {
	branch = strings.TrimPrefix(branch, "refs/heads/")
	ref := "refs/heads/" + branch
	// --branch also expands @{-1}: what comes out must be what went in. git need not be asked about a plain name.
	if !usual.MatchString(branch) {
		if out, err := repo.Run(ctx, repo.CommonDir(), "check-ref-format", "--branch", branch); err != nil || strings.TrimSuffix(out, "\n") != branch {
			if ctx.Err() != nil {
				return "", err
			}
			return "", muster.Errorf(muster.Invalid, "%q cannot be the name of a branch", branch)
		}
	}
	if userNamed && fresh {
		return "", muster.Errorf(muster.Invalid, "--fresh archives the team's own branch, and %s is yours: name another branch, or leave one of the two out", branch)
	}
	if err := repo.AwaitLock(ctx, ref); err != nil {
		return "", err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return "", err
	}
	at, err := repo.Ref(ctx, ref)
	if err != nil {
		return "", err
	}
	if at == "" {
		if err := move(ctx, repo, git.RefUpdate{Ref: ref, New: head}); err != nil {
			return "", err
		}
		return fmt.Sprintf("work lands on the new branch %s, at %.7s", branch, head), nil
	}
	if err := notCheckedOut(ctx, repo, ref); err != nil {
		return "", err
	}
	p := prepared{repo: repo, branch: branch, ref: ref, head: head, at: at}
	switch {
	case fresh && at != head:
		return p.archive(ctx, "a fresh start was asked for")
	case at == head:
		return "", nil
	case userNamed:
		return p.theirs(ctx)
	}
	return p.ours(ctx)
}

// Forget removes the marks of claims that were taken back where the board's tasks cannot have had such a claim: of an id
// that no task has, or of a later fence than the task's. They are left when somebody removes the board's files, and a new
// task with the old id could never land. No landing depends on them: it asks the board too.
func Forget(ctx context.Context, repo *git.Repo, tasks []muster.Task) error {
	const under = "refs/muster/revoked/"
	marks, err := repo.Refs(ctx, under)
	if err != nil || len(marks) == 0 {
		return err
	}
	fences := map[muster.TaskID]int{}
	for _, t := range tasks {
		fences[t.ID] = t.Fence
	}
	var gone []git.RefUpdate
	for ref, at := range marks {
		var id muster.TaskID
		var fence int
		if _, err := fmt.Sscanf(ref, under+"%d-%d", &id, &fence); err == nil && fence > fences[id] {
			gone = append(gone, git.RefUpdate{Ref: ref, Old: at})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := repo.UpdateRefs(ctx, gone); !errors.Is(err, muster.ErrStale) { // somebody else was faster: the next run looks again
		return err
	}
	return nil
}

// prepared is a target branch that exists, and is not at HEAD.
type prepared struct {
	repo                  *git.Repo
	branch, ref, head, at string
}

// theirs is a branch that the user named: it stays where it is.
func (p prepared) theirs(ctx context.Context) (string, error) {
	missing, err := p.count(ctx, p.at+".."+p.head)
	if err != nil || missing == 0 {
		return "", err
	}
	return fmt.Sprintf("%s lacks %s of HEAD: lanes are made from it as it is", p.branch, commits(missing)), nil
}

func (p prepared) ours(ctx context.Context) (string, error) {
	behind, err := p.repo.IsAncestor(ctx, p.at, p.head)
	if err != nil {
		return "", err
	}
	if behind {
		if err := move(ctx, p.repo, git.RefUpdate{Ref: p.ref, New: p.head, Old: p.at}); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s was behind and moved forward to HEAD, %.7s", p.branch, p.head), nil
	}
	ahead, err := p.repo.IsAncestor(ctx, p.head, p.at)
	if err != nil {
		return "", err
	}
	if ahead {
		n, err := p.count(ctx, p.head+".."+p.at)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s has %s that HEAD lacks, from earlier runs; this one builds on them (take them: git merge %s)", p.branch, commits(n), p.branch), nil
	}
	taken, err := p.taken(ctx)
	if err != nil {
		return "", err
	}
	if taken {
		return p.archive(ctx, "HEAD has all of its work")
	}
	return "", muster.Errorf(muster.Invalid, "%s and HEAD have diverged: each has commits that the other lacks", p.branch).WithHint(
		"take its work:        git merge %s\nland somewhere else:  muster run --land OTHER-BRANCH\nleave it behind:      muster run --fresh   (it is archived under refs/muster/archive/)", p.branch)
}

// taken reports whether merging the branch into HEAD would change nothing.
func (p prepared) taken(ctx context.Context) (bool, error) {
	tree, conflicts, err := p.repo.MergeTree(ctx, p.head, p.at)
	if err != nil {
		if ctx.Err() == nil {
			return false, nil // histories without a common start: diverged
		}
		return false, err
	}
	now, err := p.repo.Tree(ctx, p.head)
	return len(conflicts) == 0 && tree == now, err
}

// archive keeps where the branch was under a name of its own and moves it to HEAD.
func (p prepared) archive(ctx context.Context, why string) (string, error) {
	kept, err := worktree.ArchiveRef(ctx, p.repo, strings.ReplaceAll(p.branch, "/", "-"), p.at)
	if err != nil {
		return "", err
	}
	if err := move(ctx, p.repo, git.RefUpdate{Ref: p.ref, New: p.head, Old: p.at}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s starts again at HEAD, %.7s: %s (it was at %.7s, kept as %s)", p.branch, p.head, why, p.at, kept), nil
}

func (p prepared) count(ctx context.Context, span string) (n int, err error) {
	out, err := p.repo.Run(ctx, p.repo.CommonDir(), "rev-list", "--count", span)
	if err != nil {
		return 0, unavailable(ctx, "git cannot count commits", err)
	}
	_, err = fmt.Sscan(out, &n)
	return n, err
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

func move(ctx context.Context, repo *git.Repo, u git.RefUpdate) error {
	err := repo.UpdateRefs(ctx, []git.RefUpdate{u})
	if errors.Is(err, muster.ErrStale) {
		return muster.Errorf(muster.Held, "%s has just been moved by somebody else: start again", strings.TrimPrefix(u.Ref, "refs/heads/"))
	}
	return err
}
