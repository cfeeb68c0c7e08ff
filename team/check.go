package team

import (
	"context"
	"fmt"
	"io"

	"muster"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/proc"
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
	v, err := t.rooms.Lander.CheckBase(ctx)
	if err != nil {
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

// runner runs checks through the launcher, so that nothing of them outlives a stop.
func runner(l proc.Launcher) landing.Runner {
	return func(ctx context.Context, dir, command string, env []string, out io.Writer) (int, error) {
		p, err := l.Start(ctx, proc.Spec{Argv: []string{"sh", "-c", command}, Dir: dir, Env: env, Out: out})
		if err != nil {
			return 0, err
		}
		return p.Wait()
	}
}
