package code

import (
	"cmp"
	"context"
	"strings"

	"muster/internal/mailbox"
	"muster/llm"
	"muster/tool"
)

// checkInput is the input of check_background. An empty ID means all jobs.
type checkInput struct {
	ID string `json:"id,omitempty"`
}

// checkTool returns the tool check_background. It polls: the same answer twice is no sign of a loop.
func (t toolset) checkTool() llm.Tool {
	return tool.Func("check_background", "See how your background jobs do, or the last lines of one.",
		t.checkBackground, tool.ReadOnly(), tool.Polls())
}

// checkBackground reports on one job, with the end of its output, or on all of them.
func (t toolset) checkBackground(_ context.Context, in checkInput) (string, error) {
	if in.ID != "" {
		b, err := t.jobs.find(in.ID)
		if err != nil {
			return "", err
		}
		// A running job is asked for its output, too: it may have printed what the model waits for.
		return joinLines(t.jobs.report(b), b.out.Last(checkedLines)), nil
	}
	text := ""
	for _, b := range t.jobs.all() {
		text = joinLines(text, t.jobs.report(b))
	}
	return cmp.Or(text, "There are no background jobs."), nil
}

// stopInput is the input of stop_background.
type stopInput struct {
	ID string `json:"id"`
}

// stopTool returns the tool stop_background.
func (t toolset) stopTool() llm.Tool {
	return tool.Func("stop_background", "Kill a background job and all it started.", t.stopBackground)
}

// stopBackground kills a job and returns when it is dead, or when the call is cancelled.
func (t toolset) stopBackground(ctx context.Context, in stopInput) (string, error) {
	b, err := t.jobs.find(in.ID)
	if err != nil {
		return "", err
	}
	// A job that is over already is not changed by this, and its ended is closed.
	b.stop(errStopped)
	select {
	case <-b.ended:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return joinLines(t.jobs.report(b), b.out.Last(announcedLines)), nil
}

// Render returns the announcement of jobs that have ended, which the member reads at the next boundary.
// What the jobs have printed is escaped, so that it cannot close the announcement and pass for something
// else.
func Render(done []Job) string {
	announcement := "<background-results>\n"
	for _, job := range done {
		text := job.outcome()
		if job.Last != "" {
			text += "\n  " + strings.ReplaceAll(job.Last, "\n", "\n  ")
		}
		announcement += mailbox.Escape(text) + "\n"
	}
	return announcement + "</background-results>"
}
