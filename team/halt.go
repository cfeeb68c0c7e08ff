package team

import (
	"context"
	"time"

	"muster"
)

// haltWait is how long Halt waits for the end of the team's process, after its lead has stopped.
const haltWait = 20 * time.Second

// Halt stops the team at work as an interruption of its process does: at once, with its state kept, so that the run can
// be resumed. It returns when no process runs the team any more, with what became of the lead. The error is NotFound
// where no team is at work, and Invalid where its process has not ended in time; the stop is then still asked for.
func Halt(ctx context.Context, t *Team) ([]StopResult, error) {
	switch isRunning, err := t.IsRunning(ctx); {
	case err != nil:
		return nil, err
	case !isRunning:
		return nil, muster.Errorf(muster.NotFound, "no team is at work here").WithHint("see: muster status")
	}
	// The process of the lead ends when the lead does, and its teammates keep their records for the resume.
	ends, err := t.Members().Stop(ctx, true, muster.Lead)
	if err != nil {
		return ends, err
	}
	return ends, awaitHalt(ctx, t)
}

// awaitHalt waits until no process runs the team. The end of a process changes no record, so it is looked for.
func awaitHalt(ctx context.Context, t *Team) error {
	ctx, cancel := context.WithTimeoutCause(ctx, haltWait, muster.Errorf(muster.Invalid,
		"the team's process has not ended in %.0f s", haltWait.Seconds()).WithHint("see what it does: muster log -f"))
	defer cancel()
	for {
		isRunning, err := t.IsRunning(ctx)
		if err != nil || !isRunning {
			return err
		}
		select {
		case <-time.After(time.Second / 20):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
