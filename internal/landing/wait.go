package landing

import (
	"cmp"
	"context"
	"time"

	"muster"
	"muster/internal/clock"
)

// refuseUsers refuses a target that the user has checked out. Checkouts in lanes do not count.
func (g *guard) refuseUsers(ctx context.Context) error {
	path, err := g.lanes.CheckedOutElsewhere(ctx, g.options.Target)
	return cmp.Or(err, errCheckedOut(g.options.Target, path))
}

// mayBegin is refuseUsers before a landing begins: what the target is moved to from now on is not the user's.
func (g *guard) mayBegin(ctx context.Context) error {
	if err := g.refuseUsers(ctx); err != nil {
		return err
	}
	g.wasCheckedOut.Store(false)
	g.waitedFor.Clear() // the next wait is for another checkout, and people are told
	return nil
}

// obstacle is the error of a landing that has to wait for the user: the target is checked out, or was moved.
type obstacle interface {
	error
	key() string      // tells obstacles apart
	question() string // for the user
}

// obstaclePoll is the time between two looks at an obstacle.
const obstaclePoll = 2 * time.Second

// wait waits until an obstacle is gone, or until the claim is over. Looking at what has landed is what a user does
// first, and no reason to lose work.
func (g *guard) wait(ctx context.Context, id muster.TaskID, claim int, o obstacle) error {
	// Only the first landing that waits for it says so.
	if _, isSaid := g.waitedFor.LoadOrStore(o.key(), nil); !isSaid {
		if err := g.records.note(ctx, o.question()); err != nil {
			g.waitedFor.Delete(o.key()) // the next one that waits says it
			return err
		}
	}
	// No ref is watched: a poll costs one look, and people move branches seldom.
	for isGone := false; !isGone; isGone = g.isGone(ctx, o) {
		if clock.Sleep(ctx, obstaclePoll) != nil {
			return context.Cause(ctx)
		}
		if t, err := g.board.Get(ctx, id); err != nil || t.Fence != claim || !t.Claimed() {
			break // the next try says what became of it
		}
	}
	g.waitedFor.Delete(o.key()) // a landing that still waits, or waits next, says so
	return nil
}

// isGone reports whether an obstacle is gone. What git cannot tell now is asked again.
func (g *guard) isGone(ctx context.Context, o obstacle) bool {
	if _, ok := o.(*checkedOutError); ok {
		g.wasCheckedOut.Store(true)
		path, err := g.lanes.CheckedOutElsewhere(ctx, g.options.Target)
		return err == nil && path != o.key()
	}
	_, now, err := g.look(ctx)
	return err == nil && (now == nil || now.key() != o.key())
}
