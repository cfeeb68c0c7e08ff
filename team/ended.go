package team

import (
	"context"
	"errors"

	"muster"
	"muster/journal"
)

// isEndReported reports whether the journal has the end of the last run. The run's record says that it has ended before
// the journal does, so a process that is killed in between leaves a run that has ended and of which nobody was told.
func (t *Team) isEndReported(ctx context.Context) (told bool, err error) {
	for e, err := range t.deps.Journal.Read(ctx, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
		case err != nil:
			return false, err
		case e.Kind == journal.RunStarted, e.Kind == journal.RunResumed:
			told = false
		case e.Kind == journal.RunEnded:
			told = true
		}
	}
	return told, nil
}

// reportEnd returns the summary of a run that has ended, and tells its end, as the process that ran it would have done.
// No member lives and no model is asked.
func (t *Team) reportEnd(ctx context.Context, run muster.Run) (Summary, error) {
	if err := t.runEffects(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	end, err := t.deps.LeadEnd(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	return t.summarize(ctx, run, end)
}
