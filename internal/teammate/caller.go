package teammate

import (
	"cmp"
	"context"

	"muster"
	"muster/internal/tool/teamtools"
)

// caller is the member as the team's tools see it: teamtools.Caller. Each part of the member
// answers for itself: presence for Me and Asked, claims for the task, phase for Idle, plans
// and lead for what their names say, and conversation for Inbox.
type caller struct {
	*presence
	*conversation
	*claims
	*phase
	*plans
	*lead
	*self
}

func (s *self) caller() teamtools.Caller {
	return caller{s.presence, s.conversation, s.claims, s.phase, s.plans, s.lead, s}
}

// Spawn records a new teammate; the supervisor that sees the record starts it.
func (c caller) Spawn(ctx context.Context, m muster.Member) (muster.Member, error) {
	// The supervisor would refuse the model too, but only after the record was written.
	if check := c.self.CheckModel; check != nil && m.Model != "" {
		if err := check(m.Model); err != nil {
			return muster.Member{}, err
		}
	}
	run, runErr := c.self.Run(ctx)
	// Two spawns at the same time could both see room for one. Only the lead spawns, and its
	// calls that write are run one after the other.
	n, err := c.self.Roster.Teammates(ctx)
	if err = cmp.Or(runErr, err); err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have "+
			"(--teammates): wait for them, or shut one down first", n, run.Cap)
	}
	m.StartedBy, m.Status = c.self.name(), muster.Working
	m, err = c.self.Roster.Add(ctx, m)
	if err == nil && c.self.Spawned != nil {
		c.self.Spawned()
	}
	return m, err
}

// Leave answers a shutdown request for a tool call. When it is granted the member's life ends
// after the round of tools.
func (c caller) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := c.self.Requests.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	// The first decision stands. If the deadline or somebody else was faster, that is what
	// counts here, and not what the model has just said.
	r, _, err = c.self.Requests.Decide(ctx, id, c.self.name(), approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		c.phase.leave()
	}
	return err
}
