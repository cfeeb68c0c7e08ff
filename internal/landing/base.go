package landing

import (
	"context"
	"fmt"

	"muster"
	"muster/journal"
)

// What is known of the target's check, in the words of run.json. "" means that nobody has asked yet.
const (
	baseGreen = "ok"  // it passed on the base, or a landing has turned it green: no landing may make it red
	baseRed   = "red" // it failed on the base, and no landing has turned it green yet
)

// CheckBase runs the check on the target's tip and records whether it fails there: a landing may leave a red target
// red, but may never make a green one red. It queues with the landings of this process. Without a check it does nothing.
func (l *Lander) CheckBase(ctx context.Context) (res CheckResult, err error) {
	if l.options.Check.Command == "" {
		return res, nil
	}
	unlock, err := lock(ctx, l.slot)
	if err != nil {
		return res, err
	}
	defer unlock()
	return l.classifyBase(ctx)
}

// classifyBase is CheckBase for a caller that has the slot.
func (l *Lander) classifyBase(ctx context.Context) (res CheckResult, err error) {
	tip, err := l.Target(ctx)
	if err != nil {
		return res, err
	}
	res, err = l.check(ctx, tip, "base")
	switch {
	case err != nil:
	case res.Green:
		_, err = l.checkState(ctx, baseGreen)
	case !res.CannotRun:
		_, err = l.checkState(ctx, baseRed)
	}
	return res, err
}

// checkState records what the check said of the target, "" to record nothing, and returns what was known before. Red
// replaces nothing: once a landing was green, red on the target is news and never an excuse. An error is never taken for
// "nobody has asked yet": a red check would otherwise be compared with another base than the run's own.
func (l *Lander) checkState(ctx context.Context, said string) (before string, err error) {
	// Also when ctx has just ended: the answer cost a whole check.
	late, cancel := detach(ctx)
	defer cancel()
	if before, err = l.options.CheckState(late, said); err != nil {
		return "", fmt.Errorf("what the check said of %s before cannot be read or recorded: %w", l.branch(), err)
	}
	return before, nil
}

// noteGreen records that a landing's check was green: from now on a red one is refused.
func (l *Lander) noteGreen(ctx context.Context) error {
	before, err := l.checkState(ctx, baseGreen)
	if err != nil || before != baseRed {
		return err
	}
	return l.note(ctx, "the check is green on "+l.branch()+
		" now: from here on a landing whose check is red comes back")
}

// note tells people something that concerns the whole run.
func (l *Lander) note(ctx context.Context, text string) error {
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

// receiptOf returns the receipt that a check's result earns, "" when the work may not land. A red result is accepted
// only while the base is known to be red. A check that cannot run never is: on the base it ran. The caller has the
// slot.
func (l *Lander) receiptOf(ctx context.Context, res CheckResult) (string, error) {
	if res.Green {
		return muster.ReceiptGreen, nil
	}
	if res.CannotRun {
		return "", nil
	}
	state, err := l.checkState(ctx, "")
	if err == nil && state == "" {
		// Without an answer about the base, red could not be told from still red.
		if _, err = l.classifyBase(ctx); err == nil {
			state, err = l.checkState(ctx, "")
		}
	}
	if err != nil || state != baseRed {
		return "", err
	}
	return muster.ReceiptStillRed, nil
}
