package team

import (
	"context"
	"fmt"

	"muster"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/workspace"
	"muster/journal"
)

// checkBase runs the check on the base beside the lead's first turn. What it finds is said to user and lead; a check
// that cannot run at all stops the run.
func (p *runHost) checkBase(ctx context.Context) error {
	// A record that cannot be read must not mean that the base was never checked, or the check would run again. So the
	// error stops the run.
	run, err := p.Run(ctx)
	if err != nil || run.Check == "" || run.BaseCheck != "" {
		return err
	}
	p.emit(ctx, journal.CheckStarted, "", map[string]any{"command": run.Check})
	var v landing.CheckResult
	if err := p.runWithRestarts(ctx, "the check on the base", "", func() (err error) {
		v, err = p.Lander.CheckBase(ctx)
		return err
	}); err != nil {
		return err
	}
	result := workspace.BaseGreen
	switch {
	case v.CannotRun:
		return muster.Errorf(muster.Invalid, "the check cannot run: %s\n%s", run.Check, v.Output).
			WithHint("mend it, or name another: muster run --check CMD")
	case !v.Green:
		result = workspace.BaseRed
	}
	p.emit(ctx, journal.CheckBase, "",
		map[string]any{"result": result, "seconds": v.Seconds, "command": run.Check})
	// What CheckBase has found is in the run's record by now. The mail is for the lead, which may plan for it.
	if v.Green {
		return nil
	}
	_, err = p.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.System, To: muster.Lead,
		Content: fmt.Sprintf("The check fails on the base already, before any work: %s\n"+
			"Until a landing turns it green, landings whose check is red are accepted and marked \"still red\"; "+
			"after that a red check is refused. Its last lines:\n%s", run.Check, mailbox.Short(v.Output))})
	return err
}
