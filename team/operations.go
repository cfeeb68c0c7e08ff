package team

import (
	"context"
	"log/slog"

	"muster"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/workspace"
)

// operations are what people do with a team beside its board, its mail and its runs. They work with a living team or
// without one, in any process. They need no model and no member.
//
// To add one, write its steps as a method of operations, in a file of its own, and the function that embedders and
// commands call in people.go. If it changes anything, it calls workspace.PrepareChange first. If it makes no sense
// without a run, now or earlier, it begins with lastRun. If it lands something, it opens a site, as undo.go does.
type operations struct {
	workspace *workspace.Workspace
	config    *Config
	secrets   *redact.Secrets
	log       *slog.Logger
	launch    func(context.Context) (proc.Launcher, error)     // what starts checks
	open      func(context.Context, muster.Run) (*site, error) // what a landing works with
}

// lastRun returns the last run. The error is NotFound when there was none; so says what follows from that, such as
// "nothing has landed".
func (o operations) lastRun(ctx context.Context, so string) (muster.Run, error) {
	run, err := o.workspace.Runs().Look(ctx)
	if err == nil && run.Target == "" {
		err = muster.Errorf(muster.NotFound, "there was no run here, so %s", so).
			WithHint(`start one: muster run "GOAL"`)
	}
	return run, err
}
