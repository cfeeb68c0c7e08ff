package landing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/git"
)

// checkedOutError says where somebody has the target checked out.
type checkedOutError struct{ branch, path string }

// Error names the branch and the directory.
func (e *checkedOutError) Error() string { return e.branch + " is checked out at " + e.path }

// fix is the command that frees the branch.
func (e *checkedOutError) fix() string { return fmt.Sprintf("git -C %s switch ANOTHER-BRANCH", e.path) }

// refuseCheckedOut refuses to move a branch that somebody has checked out: the files there would seem to undo what has
// landed.
func refuseCheckedOut(ctx context.Context, repo *git.Repo, ref string) error {
	path, err := repo.CheckedOut(ctx, ref)
	if err != nil || path == "" {
		return err
	}
	e := &checkedOutError{strings.TrimPrefix(ref, "refs/heads/"), path}
	return muster.Errorf(muster.Held, "%w, and work cannot land on a branch that somebody has checked out", e).
		WithHint("%s", e.fix())
}

// checkedOutPoll is the time between two looks at a target that somebody has checked out.
const checkedOutPoll = 2 * time.Second

// waitUntilFree waits until nobody has the target checked out, or until the claim is over. Looking at what has landed
// is what a user does first, and no reason to lose work. It is said once in this process, however many landings wait.
func (l *Lander) waitUntilFree(ctx context.Context, id muster.TaskID, claim int, busy *checkedOutError) error {
	// Only the first landing that waits for a checkout says so.
	if _, isSaid := l.waitedFor.LoadOrStore(busy.path, true); !isSaid {
		if err := l.note(ctx, fmt.Sprintf("%s: landings wait until it is not (%s)", busy, busy.fix())); err != nil {
			return err
		}
	}
	// No ref is watched: a poll costs one look at the worktrees, and people switch branches seldom.
	for {
		if clock.Sleep(ctx, checkedOutPoll) != nil {
			return context.Cause(ctx)
		}
		if t, err := l.board.Get(ctx, id); err != nil || t.Fence != claim || !t.Claimed() {
			break // the next attempt says what became of it
		}
		if path, err := l.repo.CheckedOut(ctx, l.options.Target); err == nil && path != busy.path {
			break // what git cannot tell now is asked again
		}
	}
	l.waitedFor.Delete(busy.path)
	return nil
}
