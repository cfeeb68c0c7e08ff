package teammate

import (
	"context"
	"strings"

	"muster/internal/prompt"
)

// collisions has the member's lane looked at when this round may have changed it, and returns what the member is to
// hear of what was found since the last boundary. The look goes on in the background: it delays no turn.
func (s session) collisions(ctx context.Context) (text string) {
	// A job in the background may write at any time.
	t, _ := s.claims.CurrentTask()
	wrote := s.jobs.Running() > 0
	s.phase.change(func(c *counters) { wrote, c.wrote = wrote || c.wrote, false })
	if wrote {
		s.Collisions.Changed(t.Worktree)
	}
	if notices := s.Collisions.Take(s.name(), t.ID); len(notices) > 0 {
		run, err := s.Run(ctx)
		s.logDropped(ctx, "reading the target for a reminder", err)
		text = prompt.Collisions(notices, t.ID, strings.TrimPrefix(run.Target, "refs/heads/"))
	}
	return text
}
