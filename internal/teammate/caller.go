package teammate

import (
	"context"

	"muster"
	"muster/internal/requests"
)

// caller is the member as the team's tools see it: teamtools.Caller. Each part of the member answers for itself.
type caller struct {
	*presence     // Me, Asked
	*conversation // Inbox
	*claims       // CurrentTask, Claim, Complete, Completed, Release
	*plans        // Plan
	*phase        // Idle
	*lead         // Wait
	*staff        // Spawn

	decisions *requests.Requests
}

// Leave answers a shutdown request for a tool call. If granted, the member's life ends after the round of tools.
func (c caller) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := c.decisions.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	// The first decision counts, not what the model has just said.
	r, _, err = c.decisions.Decide(ctx, id, c.Me().Name, approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		c.phase.leave()
	}
	return err
}
