package landing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"muster"
	"muster/internal/clock"
)

// refuseUsers is refuseCheckedOut of the target during a run, when only what is the user's counts.
func refuseUsers(ctx context.Context, l *Lander) error {
	path, err := l.lanes.CheckedOutElsewhere(ctx, l.options.Target)
	return cmp.Or(err, errCheckedOut(l.options.Target, path))
}

// checkedOutPoll is the time between two looks at a target that somebody has checked out or moved.
const checkedOutPoll = 2 * time.Second

// waitUntilFree waits until nobody has the target checked out, or until the claim is over. Looking at what has landed
// is what a user does first, and no reason to lose work.
func (l *Lander) waitUntilFree(ctx context.Context, id muster.TaskID, claim int, busy *checkedOutError) error {
	text := fmt.Sprintf("%s: landings wait until it is not (%s)", busy, busy.fix())
	return l.waitFor(ctx, id, claim, busy.path, text, func(ctx context.Context) bool {
		l.wasCheckedOut.Store(true)
		path, err := l.lanes.CheckedOutElsewhere(ctx, l.options.Target)
		return err == nil && path != busy.path // what git cannot tell now is asked again
	})
}

// waitFor waits until isOver says so, or until the claim is over. What landings wait for, which is named by key, is
// said once in this process, however many wait for it.
func (l *Lander) waitFor(
	ctx context.Context, id muster.TaskID, claim int, key, text string, isOver func(context.Context) bool,
) error {
	// Only the first landing that waits for it says so.
	if _, isSaid := l.waitedFor.LoadOrStore(key, nil); !isSaid {
		if err := l.note(ctx, text); err != nil {
			l.waitedFor.Delete(key) // whoever waits next says it
			return err
		}
	}
	// No ref is watched: a poll costs one look, and people move branches seldom.
	for {
		if clock.Sleep(ctx, checkedOutPoll) != nil {
			return context.Cause(ctx)
		}
		if t, err := l.board.Get(ctx, id); err != nil || t.Fence != claim || !t.Claimed() {
			break // the next attempt says what became of it
		}
		if isOver(ctx) {
			break
		}
	}
	l.waitedFor.Delete(key) // whoever still waits, or waits next, says so
	return nil
}

// waitUntilBack waits until the target is where landings may go on, or until the claim is over.
func waitUntilBack(ctx context.Context, l *Lander, id muster.TaskID, claim int, d *Displaced) error {
	return l.waitFor(ctx, id, claim, d.key(), d.question(), func(ctx context.Context) bool {
		_, now, err := l.look(ctx)
		return err == nil && (now == nil || now.key() != d.key())
	})
}
