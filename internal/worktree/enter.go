package worktree

import (
	"context"
	"strings"

	"muster"
)

// Enter returns the directory of a lane after checking that it is the one that is meant: its top level, its repository
// and its branch are the expected ones. Whatever is unclear is an error.
func (l *Lanes) Enter(ctx context.Context, name muster.Name) (dir string, err error) {
	lane, err := l.enter(ctx, name)
	return lane.Path, err
}

// Workdir is Enter for the tools of the lane's owner: the directory must be the lane's, but the owner may have another
// branch or none checked out in it, as in the middle of a rebase. Enter, Commit and Merge refuse that until it is over.
func (l *Lanes) Workdir(ctx context.Context, name muster.Name) (dir string, err error) {
	lane, _, err := l.workdir(ctx, name)
	return lane.Path, err
}

// enter returns a lane that is on its own branch. The hints bring one back that is not.
func (l *Lanes) enter(ctx context.Context, name muster.Name) (muster.Lane, error) {
	lane, head, err := l.workdir(ctx, name)
	switch {
	case err != nil:
		return muster.Lane{}, err
	case head == branchRef(lane):
		return lane, nil
	case head == "HEAD":
		return muster.Lane{}, muster.Errorf(muster.Invalid, "the lane %s is on no branch, and should be on %s",
			name, lane.Branch).
			WithHint("finish or abort the rebase, then: git -C %s checkout %s", lane.Path, lane.Branch)
	}
	other := strings.TrimPrefix(head, "refs/heads/")
	return muster.Lane{}, muster.Errorf(muster.Invalid, "the lane %s is on branch %s, and should be on %s",
		name, other, lane.Branch).
		WithHint("git -C %s checkout %s && git -C %s merge %s", lane.Path, lane.Branch, lane.Path, other)
}

// workdir returns a lane that can be worked in, and what its HEAD points to.
func (l *Lanes) workdir(ctx context.Context, name muster.Name) (lane muster.Lane, head string, err error) {
	lane, err = l.Get(ctx, name)
	if err != nil {
		return lane, "", err
	}
	// A lane that is being removed is active or kept by its status: its row says so in a field of its own.
	status := string(lane.Status)
	_, isRemoving := removalOf(lane)
	if isRemoving {
		status = "being removed"
	}
	if isRemoving || lane.Status != muster.LaneActive && lane.Status != muster.LaneKept {
		return muster.Lane{}, "", muster.Errorf(muster.Held, "the lane %s is %s: nobody can work in it", name, status)
	}
	if head, err = l.checkout(lane).verify(ctx); err != nil {
		return muster.Lane{}, "", err
	}
	return lane, head, nil
}
