package landing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/git"
	"muster/journal"
)

// notCheckedOut refuses to move a branch under somebody's checkout: their files would seem to undo what has landed.
func notCheckedOut(ctx context.Context, repo *git.Repo, ref string) error {
	path, err := repo.CheckedOut(ctx, ref)
	if err != nil || path == "" {
		return err
	}
	taken := checkedOut{strings.TrimPrefix(ref, "refs/heads/"), path}
	return muster.Errorf(muster.Held, "%w, and work cannot land on a branch that somebody has checked out", &taken).WithHint("%s", taken.way())
}

// checkedOut says where somebody has the target checked out.
type checkedOut struct{ branch, path string }

func (e *checkedOut) Error() string { return e.branch + " is checked out at " + e.path }

// way is what frees the branch.
func (e *checkedOut) way() string { return fmt.Sprintf("git -C %s switch ANOTHER-BRANCH", e.path) }

func (l *Lander) free(ctx context.Context) error { return notCheckedOut(ctx, l.repo, l.o.Target) }

// lookAgain is the time between two looks at a target that somebody has checked out.
const lookAgain = 2 * time.Second

// waitFor waits until nobody has the target checked out, or the claim is over: to look at what has landed is what a user does
// first, and no reason to lose work. It says so once in this process, however many landings wait.
func (l *Lander) waitFor(ctx context.Context, id muster.TaskID, fence int, taken *checkedOut) error {
	l.mu.Lock()
	said := l.taken
	l.taken = taken.path
	l.mu.Unlock()
	if said != taken.path {
		if err := l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{
			"text": fmt.Sprintf("%s: landings wait until it is not (%s)", taken, taken.way())}}); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
		if t, err := l.board.Get(ctx, id); err != nil || t.Fence != fence || !t.Claimed() {
			break // the next try says what became of it
		}
		if path, err := l.repo.CheckedOut(ctx, l.o.Target); err != nil || path == taken.path {
			continue // what cannot be asked now is asked again
		}
		break
	}
	l.mu.Lock()
	l.taken = ""
	l.mu.Unlock()
	return nil
}
