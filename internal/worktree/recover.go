package worktree

import (
	"context"
	"time"

	"muster"
	"muster/internal/git"
)

// Recover finishes or undoes what a crash left half done, row by row of the index, and adds the lanes that git has and
// the index lacks. It leaves alone what other processes are making at the moment. A lane that cannot be removed as its
// row says is reported as an event, and stays.
func (l *Lanes) Recover(ctx context.Context) error {
	doc, err := l.index.read(ctx)
	if err != nil {
		return err
	}
	if err := l.index.removeTemporaryFiles(ctx); err != nil {
		return err
	}
	// A directory that cannot be removed is no error here: it stays noted, and the next recovery tries again.
	if _, err := l.CheckDirs.RemoveAbandoned(); err != nil {
		return err
	}
	// Only the runtime moves these refs, in an instant each: a lock that stays is a killed git's.
	if err := l.repo.BreakLocks(ctx, "refs/muster"); err != nil {
		return err
	}
	// Rows of other programs that cannot be read are left as they are.
	for _, lane := range l.index.lanes(doc) {
		if err := l.recoverLane(ctx, lane); err != nil {
			return err
		}
	}
	return l.index.addMissing(ctx)
}

// recoverLane finishes or undoes what the row of a lane says is under way, and checks one that is at rest.
func (l *Lanes) recoverLane(ctx context.Context, lane muster.Lane) error {
	r, isRemoving := removalOf(lane)
	switch {
	case lane.Status == muster.LaneCreating:
		return l.recoverCreation(ctx, lane)
	case isRemoving:
		return l.recoverRemoval(ctx, lane, r)
	case lane.Status == muster.LaneFailed:
		return nil
	case isMissing(lane.Path):
		return l.recoverMissing(ctx, lane)
	}
	// A killed git may have left locks with which the next owner could not commit.
	if err := l.repo.BreakLocks(ctx, branchRef(lane)); err != nil {
		return err
	}
	return l.repo.AwaitWorktreeLock(ctx, lane.Path)
}

// gitEndTime is how long the git of a killed process may need to end after it.
const gitEndTime = 150 * time.Millisecond

// endLeftGit waits until a git that a killed process left has ended, and breaks the lock that it left on the lane's
// branch. It is called before anything of a dead process is undone or finished: two gits at once in one worktree could
// leave a mixture that neither of them would.
func endLeftGit(ctx context.Context, repo *git.Repo, lane muster.Lane) error {
	if err := wait(ctx, gitEndTime); err != nil {
		return err
	}
	return repo.BreakLocks(ctx, branchRef(lane))
}
