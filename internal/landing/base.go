package landing

import (
	"context"
	"fmt"

	"muster"
	"muster/journal"
)

// What is known of the target's check, as run.json has it: "" is nothing yet.
const (
	baseGreen = "ok"  // it passed on the base, or a landing has turned it green: no landing may make it red
	baseRed   = "red" // it failed on the base, and no landing has turned it green yet
)

// BaseVerdict is what the check says of the target as it is.
type BaseVerdict struct {
	Green     bool
	CannotRun bool   // exit 126 or 127, or the setup failed: no landing could ever be verified
	Unset     bool   // no check is set
	How       string // "exit 1", "exit 127: the command was not found", "no end within 10m0s"
	Output    string // the last lines
	Log       string // the path of the check's log
	Seconds   float64
	Commit    string // what was checked
}

// CheckBase runs the check on the target's tip and remembers whether it is red, for the rule that a landing may leave a red
// target red but never make a green one red. It queues with the landings of this process.
func (l *Lander) CheckBase(ctx context.Context) (BaseVerdict, error) {
	if l.o.Check.Command == "" {
		return BaseVerdict{Unset: true}, nil
	}
	leave, err := l.queue(ctx)
	if err != nil {
		return BaseVerdict{}, err
	}
	defer leave()
	return l.checkBase(ctx)
}

func (l *Lander) checkBase(ctx context.Context) (BaseVerdict, error) {
	tip, err := l.Target(ctx)
	if err != nil {
		return BaseVerdict{}, err
	}
	res, err := l.check(ctx, tip, "base")
	if err != nil {
		return BaseVerdict{}, err
	}
	v := BaseVerdict{Green: res.green, CannotRun: res.cannot, How: res.how, Output: lastLines(res.tail, maxTail),
		Log: res.log, Seconds: res.seconds, Commit: tip}
	switch {
	case v.Green:
		err = l.know(ctx, baseGreen)
	case !v.CannotRun:
		var was string
		if was, err = l.baseState(ctx); err == nil && was == "" {
			err = l.know(ctx, baseRed)
		}
	}
	return v, err
}

// baseState returns what is known of the target's check. An error means that it cannot be read: it is never "nothing yet",
// or a check that is red would be compared with another base than the run's own.
func (l *Lander) baseState(ctx context.Context) (string, error) {
	state, err := l.o.BaseState(ctx)
	if err != nil {
		return "", fmt.Errorf("what the check said of %s before cannot be read: %w", l.branch(), err)
	}
	return state, nil
}

// know keeps what the check said.
func (l *Lander) know(ctx context.Context, state string) error {
	if was, err := l.baseState(ctx); err != nil || was == state {
		return err
	}
	late, cancel := grace(ctx)
	defer cancel()
	return l.o.SetBaseState(late, state)
}

// turnedGreen notes that a landing's check was green: from now on red is refused.
func (l *Lander) turnedGreen(ctx context.Context) error {
	was, err := l.baseState(ctx)
	if err == nil {
		err = l.know(ctx, baseGreen)
	}
	if err != nil || was != baseRed {
		return err
	}
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{
		"text": "the check is green on " + l.branch() + " now: from here on a landing whose check is red comes back"}})
}

// judge says what receipt a check's result earns; "" when the work may not land. A check that cannot run is never "still
// red": on the base it ran. The caller has the turn.
func (l *Lander) judge(ctx context.Context, res result) (string, error) {
	if res.green {
		return muster.ReceiptGreen, nil
	}
	if res.cannot {
		return "", nil
	}
	state, err := l.baseState(ctx)
	if err == nil && state == "" {
		// Nobody has asked about the base yet: without an answer red cannot be told from still red.
		if _, err = l.checkBase(ctx); err == nil {
			state, err = l.baseState(ctx)
		}
	}
	if err != nil || state != baseRed {
		return "", err
	}
	return muster.ReceiptStillRed, nil
}
