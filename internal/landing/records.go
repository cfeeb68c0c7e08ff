package landing

import (
	"context"
	"fmt"

	"muster"
	"muster/internal/clock"
	"muster/journal"
)

// unavailable says what could not be done. Such a landing is tried again. The end of ctx stays what it is.
func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s: %w", what, err)
}

// What is known of the target's check, in the words of run.json. "" means that nobody has asked yet.
const (
	BaseGreen = "ok"  // it passed on the base, or a landing has turned it green: no landing may make it red
	BaseRed   = "red" // it failed on the base, and no landing has turned it green yet
	// ForgetBase is said of a target that the user has moved: what was known is of another commit. It is in no record.
	ForgetBase = "forget"
)

// checkState records what the check said of the target, "" to record nothing, and returns what was known before.
// Red replaces nothing: once a landing was green, red on the target is news and never an excuse. An error is never
// taken for "nobody has asked yet": a red check would otherwise be compared with another base than the run's own.
func (l *Lander) checkState(ctx context.Context, said string) (before string, err error) {
	// Also when ctx has just ended: the answer cost a whole check.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if before, err = l.options.CheckState(late, said); err != nil {
		return "", fmt.Errorf("what the check said of %s before cannot be read or recorded: %w", l.branch(), err)
	}
	return before, nil
}

// noteGreen records that a landing's check was green: from now on a red one is refused.
func (l *Lander) noteGreen(ctx context.Context) error {
	before, err := l.checkState(ctx, BaseGreen)
	if err != nil || before != BaseRed {
		return err
	}
	return l.note(ctx, "the check is green on "+l.branch()+
		" now: from here on a landing whose check is red comes back")
}

// note tells people something that concerns the whole run.
func (l *Lander) note(ctx context.Context, text string) error {
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

// landedCommits returns the commits that the board says have landed.
func landedCommits(ctx context.Context, l *Lander) (map[string]bool, error) {
	tasks, err := l.board.List(ctx)
	landed := map[string]bool{}
	for _, t := range tasks {
		if t.Landed != nil {
			landed[t.Landed.Commit] = true
		}
	}
	return landed, err
}
