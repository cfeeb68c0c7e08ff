package cli

import (
	"github.com/spf13/cobra"

	"muster/internal/face"
	"muster/internal/workspace"
)

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
			return a.print(now, now.Draw)
		})}
}
