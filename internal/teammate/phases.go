package teammate

import (
	"context"

	"muster"
	"muster/internal/clock"
)

// Phases looks, at the end of each work phase, at what no member may change: the target and what is the user's.
type Phases interface {
	// Begin says that the member begins a phase.
	Begin(ctx context.Context, name muster.Name)
	// End says that the phase of the member is over, and tells whoever should know what has changed in it. moved says
	// how the member has moved the target, "" when it has not: then its task goes back to the board.
	End(ctx context.Context, name muster.Name, task muster.Task) (moved string)
}

// endPhase has what is not the member's looked at. It is done when ctx has ended too: what a phase that was cut off has
// changed is found by nobody else.
func (m *Member) endPhase(ctx context.Context) error {
	if m.phases == nil {
		return nil
	}
	last, cancel := clock.Detach(ctx)
	defer cancel()
	t, _ := m.claims.CurrentTask()
	if moved := m.phases.End(last, m.name(), t); moved != "" && ctx.Err() == nil {
		return m.claims.release(ctx, "its owner moved the target", moved, true)
	}
	return nil
}
