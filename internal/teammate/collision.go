package teammate

import (
	"context"
	"strings"

	"muster/internal/prompt"
)

// collisions has the member's lane looked at when this round may have changed it, and returns what the member is to
// hear of what was found since the last boundary. The look goes on in the background: it delays no turn. When it finds
// something is for no order of steps to say, so that it is noted there.
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
	// While a run is played nothing is looked for, and what was found when it was recorded is said again.
	if text != "" || s.Order.Plays() {
		text, _ = s.Order.Note(text)
	}
	return text
}
