package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/internal/worktree"
)

// plainBranch matches names of branches about which git need not be asked: the team's own is one.
var plainBranch = lazyregexp.New(`^muster/[a-z0-9]+(-[a-z0-9]+)*$`)

// PrepareTarget makes the branch on which work lands ready for a run, and returns one line for the user, which may be
// empty.
//
// The team's own branch is made at HEAD when it is missing, and moved forward when it is behind. It is kept when it is
// ahead, with landed work that the user has not taken yet. It is archived and moved when merging it into HEAD would
// change nothing, because the user took it by squash or rebase, and when it has only a snapshot of the user's
// uncommitted changes. When it has diverged it is refused, unless fresh, which archives it. A branch that the user
// named is made when it is missing, and never moved here.
//
// Either is refused while it is checked out. A lock that a killed git left on it is removed. Errors: Held, Invalid,
// each with what to do.
func PrepareTarget(
	ctx context.Context, repo *git.Repo, branch string, userNamed, fresh bool,
) (note string, err error) {
	branch = strings.TrimPrefix(branch, "refs/heads/")
	if err := checkBranchName(ctx, repo, branch); err != nil {
		return "", err
	}
	if userNamed && fresh {
		return "", muster.Errorf(muster.Invalid, "--fresh archives the team's own branch, and %s is yours: "+
			"name another branch, or leave one of the two out", branch)
	}
	t := target{repo: repo, branch: branch, ref: "refs/heads/" + branch}
	// A lock that a killed git left would fail every landing of the run.
	if err := repo.AwaitLock(ctx, t.ref); err != nil {
		return "", err
	}
	if t.head, err = repo.Head(ctx); err != nil {
		return "", err
	}
	if t.at, err = repo.Ref(ctx, t.ref); err != nil {
		return "", err
	}
	if t.at == "" {
		return fmt.Sprintf("work lands on the new branch %s, at %.7s", branch, t.head), t.moveToHead(ctx)
	}
	if err := refuseCheckedOut(ctx, repo, t.ref); err != nil {
		return "", err
	}
	// A landing replaces a symbolic ref, and the branch to which it leads would not follow.
	if _, link, err := repo.Branch(ctx, t.ref); err != nil || link != "" {
		return "", cmp.Or(err, error(muster.Errorf(muster.Invalid, "%s is a symbolic ref, and work lands on plain "+
			"branches only", branch).
			WithHint("name the branch itself: muster run --land %s",
				text.ShellQuote(strings.TrimPrefix(link, "refs/heads/")))))
	}
	// Only the team's own branch may be moved here; one that the user named is looked at and left where it is.
	switch {
	case t.at == t.head:
		return "", nil
	case fresh:
		return t.restart(ctx, "a fresh start was asked for")
	case userNamed:
		return t.noteMissing(ctx)
	}
	return t.update(ctx)
}

// PlannedTip returns the commit at which PrepareTarget would leave the branch. It writes nothing, and refuses nothing.
func PlannedTip(ctx context.Context, repo *git.Repo, ref string, userNamed, fresh bool) (string, error) {
	head, errHead := repo.Head(ctx)
	at, err := repo.Ref(ctx, ref)
	if err = cmp.Or(errHead, err); err != nil || at == "" || fresh {
		return head, err
	}
	if userNamed {
		return at, nil
	}
	if isAhead, err := repo.IsAncestor(ctx, head, at); err != nil || !isAhead {
		return head, err
	}
	if _, isAll, err := SnapshotIn(ctx, repo, head, at); err != nil || isAll {
		return head, err
	}
	return at, nil
}

// CheckTarget refuses a branch on which work cannot land: one that has no valid name, or that is checked out. It
// writes nothing.
func CheckTarget(ctx context.Context, repo *git.Repo, branch string) error {
	if err := checkBranchName(ctx, repo, branch); err != nil {
		return err
	}
	return refuseCheckedOut(ctx, repo, "refs/heads/"+branch)
}

// checkBranchName refuses what cannot be a branch's name. git's --branch also expands @{-1}, so what comes out must be
// what went in.
func checkBranchName(ctx context.Context, repo *git.Repo, branch string) error {
	if plainBranch().MatchString(branch) {
		return nil
	}
	out, err := repo.Run(ctx, repo.CommonDir(), "check-ref-format", "--branch", branch)
	if ctx.Err() != nil {
		return err
	}
	if err != nil || strings.TrimSuffix(out, "\n") != branch {
		return muster.Errorf(muster.Invalid, "%q cannot be the name of a branch", branch)
	}
	return nil
}

// target is a target branch at the start of a run.
type target struct {
	repo   *git.Repo
	branch string // without refs/heads/
	ref    string
	head   string // the commit at HEAD
	at     string // the commit that the branch is at; "": there is no such branch
}

func (t target) noteMissing(ctx context.Context) (string, error) {
	missing, err := t.commits(ctx, t.at+".."+t.head)
	if err != nil || missing == "" {
		return "", err
	}
	return fmt.Sprintf("%s lacks %s of HEAD: lanes are made from it as it is", t.branch, missing), nil
}

func (t target) update(ctx context.Context) (string, error) {
	// The order of the questions matters: only a branch that is neither behind nor ahead can have diverged.
	isBehind, err := t.repo.IsAncestor(ctx, t.at, t.head)
	if err != nil {
		return "", err
	}
	if isBehind {
		return fmt.Sprintf("%s was behind and moved forward to HEAD, %.7s", t.branch, t.head), t.moveToHead(ctx)
	}
	snapshot, isAll, err := SnapshotIn(ctx, t.repo, t.head, t.at)
	if err != nil {
		return "", err
	}
	if isAll {
		return t.restart(ctx, "it had nothing but a snapshot")
	}
	isAhead, err := t.repo.IsAncestor(ctx, t.head, t.at)
	if err != nil {
		return "", err
	}
	if isAhead {
		take := "git merge " + t.branch
		if snapshot != "" { // git would refuse to merge over the files of which it is one
			take = "muster merge"
		}
		landed, err := t.commits(ctx, t.head+".."+t.at)
		return fmt.Sprintf("%s has %s that HEAD lacks, from earlier runs; this one builds on them (take them: %s)",
			t.branch, landed, take), err
	}
	isTaken, err := t.isTaken(ctx)
	if err != nil {
		return "", err
	}
	if isTaken {
		return t.restart(ctx, "HEAD has all of its work")
	}
	return "", muster.Errorf(muster.Invalid,
		"%s and HEAD have diverged: each has commits that the other lacks", t.branch).
		WithHint("take its work:        git merge %s\n"+
			"land somewhere else:  muster run --land OTHER-BRANCH\n"+
			"leave it behind:      muster run --fresh   (it is archived under refs/muster/archive/)",
			text.ShellQuote(t.branch))
}

// isTaken reports whether merging the branch into HEAD would change nothing. After a squash or a rebase the histories
// differ, and only the trees tell that the user has the work already.
func (t target) isTaken(ctx context.Context) (bool, error) {
	tree, conflicts, err := t.repo.MergeTree(ctx, t.head, t.at)
	if err != nil {
		return false, ctx.Err() // histories without a common start have diverged
	}
	headTree, err := t.repo.Tree(ctx, t.head)
	return len(conflicts) == 0 && tree == headTree, err
}

func (t target) restart(ctx context.Context, why string) (string, error) {
	// The archive ref is made first: at no moment do the old commits have no ref.
	kept, err := worktree.ArchiveRef(ctx, t.repo, strings.ReplaceAll(t.branch, "/", "-"), t.at)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s starts again at HEAD, %.7s: %s (it was at %.7s, kept as %s)",
		t.branch, t.head, why, t.at, kept), t.moveToHead(ctx)
}

// moveToHead moves the branch to HEAD, if it still is where it was. A landing of another process in between is never
// lost: the comparison and the move are one transaction.
func (t target) moveToHead(ctx context.Context) error {
	err := t.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: t.ref, New: t.head, Old: t.at}})
	if errors.Is(err, muster.ErrStale) {
		return muster.Errorf(muster.Held, "%s has just been moved by somebody else: start again", t.branch)
	}
	return err
}

// commits returns in words how many commits lie in a range such as A..B, "" for none.
func (t target) commits(ctx context.Context, commitRange string) (string, error) {
	out, err := t.repo.Run(ctx, t.repo.CommonDir(), "rev-list", "--count", commitRange)
	if err != nil {
		return "", unavailable(ctx, "git cannot count commits", err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(out)) // git prints a number
	if n == 0 {
		return "", nil
	}
	return text.Count(n, "commit"), nil
}

// checkedOutError says where somebody has the target checked out.
type checkedOutError struct{ branch, path string }

func (e *checkedOutError) Error() string { return e.branch + " is checked out at " + e.path }

func (e *checkedOutError) key() string { return e.path }

func (e *checkedOutError) question() string {
	return fmt.Sprintf("%s: landings wait until it is not (%s)", e, e.fix())
}

func (e *checkedOutError) fix() string {
	return fmt.Sprintf("git -C %s switch ANOTHER-BRANCH", text.ShellQuote(e.path))
}

// refuseCheckedOut refuses to move a branch that somebody has checked out: the files there would seem to undo what has
// landed.
func refuseCheckedOut(ctx context.Context, repo *git.Repo, ref string) error {
	path, err := repo.CheckedOut(ctx, ref)
	return cmp.Or(err, errCheckedOut(ref, path))
}

// errCheckedOut is the error for a branch that is checked out at path; nil for "", which is nowhere.
func errCheckedOut(ref, path string) error {
	if path == "" {
		return nil
	}
	e := &checkedOutError{strings.TrimPrefix(ref, "refs/heads/"), path}
	return muster.Errorf(muster.Held, "%w, and work cannot land on a branch that somebody has checked out", e).
		WithHint("%s", e.fix())
}
