package team

import (
	"context"
	"fmt"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/journal"
)

// What the run's record says of the target's check.
const (
	baseGreen = "ok"
	baseRed   = "red"
)

// checkBase runs the check on the base beside the lead's first turn. What it finds is said to user and lead; a check
// that cannot run at all stops the run.
func (t *Team) checkBase(ctx context.Context) error {
	run, err := t.runs.get(ctx)
	if err != nil || run.Check == "" || run.BaseCheck != "" {
		return err
	}
	t.emit(ctx, muster.Event{Kind: journal.CheckStarted, Fields: map[string]any{"command": run.Check}})
	var v landing.BaseVerdict
	if err := t.patiently(ctx, func() (err error) {
		v, err = t.rooms.Lander.CheckBase(ctx)
		return err
	}); err != nil {
		return err
	}
	result := baseGreen
	switch {
	case v.CannotRun:
		return muster.Errorf(muster.Invalid, "the check cannot run: %s\n%s", run.Check, v.Output).WithHint("mend it, or name another: muster run --check CMD")
	case !v.Green:
		result = baseRed
	}
	t.emit(ctx, muster.Event{Kind: journal.CheckBase, Fields: map[string]any{"result": result, "seconds": v.Seconds, "command": run.Check}})
	if v.Green {
		return nil
	}
	_, err = t.rooms.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.System, To: muster.Lead, Content: fmt.Sprintf(
		"The check fails on the base already, before any work: %s\nUntil a landing turns it green, landings whose check is red are accepted and marked \"still red\"; after that a red check is refused. Its last lines:\n%s", run.Check, mailbox.Short(v.Output))})
	return err
}

// patiently does again what the check on the base failed to do for a cause that may pass, as often as a member goes on, and
// where the disk is full until there is room: that is no reason to stop a team.
func (t *Team) patiently(ctx context.Context, do func() error) error {
	for tries, pause, full := 0, time.Second, false; ; pause = min(2*pause, roomAgain) {
		err := do()
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		waits, when := noRoom(err), "after an error"
		if waits {
			when = "when there is room"
		} else if tries++; tries > maxRevivals {
			return err
		}
		t.log.Warn("base check is tried again", "cause", causeText(err), "wait", pause)
		if !waits || !full { // a full disk is said once
			t.emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": "the check on the base goes on " + when + ": " + mailbox.Short(err.Error())}})
		}
		full = full || waits
		if !wait(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}
