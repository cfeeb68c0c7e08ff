package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muster/internal/face"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// status is what muster status prints of a team.
type status struct {
	view.Overview
	// Stopped is why the team has stopped before the end of its run; "" where it has not, or where Run says it.
	Stopped string `json:"stopped,omitempty"`
	// Untaken is what has landed that the user's branch lacks, where no team is at work.
	Untaken *team.Untaken `json:"untaken,omitempty"`
}

// newStatusCommand returns muster status. It reads everything once and writes nothing. State without a run, a member
// or a task counts as no team.
func newStatusCommand(a *App) *cobra.Command {
	none := func() error {
		return a.printLine(face.Empty(), nil, "%s: %s", workspace.ErrNoTeam.Message, workspace.ErrNoTeam.Hint)
	}
	return &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: namedArgs(),
		RunE: a.looking(none, func(c *cobra.Command, o opened, _ []string) error {
			now, err := face.Overview(c.Context(), o.Team, a.Now())
			if err != nil {
				return err
			}
			// The directory of the state may exist before anything has happened in it.
			if now.Run.StartedAt == 0 && len(now.Members) == 0 && len(now.Tasks) == 0 {
				return none()
			}
			s := status{Overview: now}
			if !now.Alive && now.Run.StartedAt > 0 {
				s.look(c.Context(), o)
			}
			return a.print(s, s.draw)
		})}
}

// look finds what only matters while no team is at work. What cannot be told is left out.
func (s *status) look(ctx context.Context, o opened) {
	if s.Run.EndedAt == 0 && s.Run.Stopped == "" {
		s.Stopped = howStopped(ctx, o, s.Run)
	}
	if u, err := team.TargetOf(o.Team).Untaken(ctx); err == nil && u.Commits > 0 {
		s.Untaken = &u
	}
}

func (s status) draw(screen view.Screen) string {
	out := s.Overview.Draw(screen)
	if s.Stopped != "" {
		out += "STOPPED " + s.Stopped + "\n"
	}
	if u := s.Untaken; u != nil {
		out += fmt.Sprintf("TAKE    %s not in %s yet: muster merge\n",
			text.Count(u.Commits, "landed commit")+text.Plural(u.Commits, " is", " are"), text.OneLine(u.Branch))
	}
	return out
}
