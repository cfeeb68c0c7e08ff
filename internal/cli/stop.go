package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// stop returns muster team stop. It exits with 1 when a member goes on, however that is printed. Members that have
// shut down already are left out.
func (t teamCommands) stop() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "stop [NAME]", Short: "stop a teammate, or the whole team", Args: namedArgs("[NAME]"),
		Long: "An idle member stops at once. A working one is asked, and may refuse with a reason; who does not\n" +
			"answer in 30 s is stopped. Tasks go back to the board, lanes are kept. Without NAME all are\n" +
			"stopped, the lead last."}
	c.Flags().BoolVar(&force, "force", false, "do not ask")
	c.RunE = t.changing(func(c *cobra.Command, w *workspace.Workspace, args []string) error {
		results, err := stopMembers(c.Context(), w, args, force)
		if err != nil {
			return err
		}
		ends := make([]stopped, len(results))
		for i, r := range results {
			ends[i] = stopped{Name: r.Name, Stopped: r.IsStopped, Why: r.Why}
		}
		err = t.print(ends, func(w io.Writer, _ view.Paint, _ int) error { return writeStopped(w, ends) })
		if err != nil {
			return err
		}
		// The result is printed before, so the user sees who goes on and why.
		if slices.ContainsFunc(ends, func(e stopped) bool { return !e.Stopped }) {
			return exitStatus(exitError)
		}
		return nil
	})
	return c
}

// stopMembers stops the named member, or all of the team without a name. A member that has shut down already is left
// out.
func stopMembers(
	ctx context.Context, w *workspace.Workspace, args []string, force bool,
) ([]team.StopResult, error) {
	opened, err := team.OpenIn(w, team.Config{}) //nolint:contextcheck // OpenIn starts nothing.
	if err != nil {
		return nil, err
	}
	members := opened.Members()
	if len(args) == 0 {
		return members.StopAll(ctx, force)
	}
	name := muster.Name(args[0])
	m, err := w.Roster(ctx).Get(ctx, name) // a name that nobody has is an error, with names that are like it
	if err != nil || m.Status == muster.Shutdown {
		return nil, err
	}
	r, err := members.Stop(ctx, name, force)
	return []team.StopResult{r}, err
}

// stopped is what became of one member. It is what --json prints for each.
type stopped struct {
	Name    muster.Name `json:"name"`
	Stopped bool        `json:"stopped"`
	Why     string      `json:"reason,omitempty"`
}

// writeStopped prints what became of each member. The reason is that of the member, or why the command gave up
// waiting for it.
func writeStopped(w io.Writer, ends []stopped) error {
	if len(ends) == 0 {
		_, err := fmt.Fprintln(w, "nobody is there to stop")
		return err
	}
	t := view.Table{Titles: []string{"", "", ""}, Wide: -1}
	for _, e := range ends {
		state := "goes on"
		if e.Stopped {
			state = "stopped"
		}
		t.Row(view.Text(string(e.Name)), view.Text(state), view.Text(view.OneLine(e.Why)))
	}
	return t.Write(w, false, 0)
}
