package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// join returns muster join, which makes this process a second host of the team. The process has workers but no
// lead: its workers claim tasks from the board.
func (r runCommands) join() *cobra.Command {
	var workers team.Workers
	c := &cobra.Command{Use: "join", Short: "add a process with workers to the team at work here", Args: namedArgs(),
		Long: "The workers, worker-1 and so on, claim tasks as every teammate does. Teammates of a process that\n" +
			"dies are taken over by one that lives. Ends when the run is over, or the workers have shut down;\n" +
			"Ctrl-C leaves them to the team's other processes."}
	f := c.Flags()
	f.String("model", "", "`MODEL` of the workers (default: the run's)")
	f.IntVar(&workers.N, "teammates", 1, "how many workers")
	f.StringVar(&workers.Role, "role", "worker", "`ROLE` of the workers: tasks for another role are not theirs")
	// The number is checked before anything is opened: package team would take 0 for one worker.
	c.RunE = func(c *cobra.Command, _ []string) error {
		if workers.N < 1 {
			return &usageError{c.CommandPath(), "--teammates is how many workers join: at least 1"}
		}
		flags := setFlags(f)
		delete(flags, "teammates") // as a setting it is the run's own limit, which is another thing
		o, err := r.change(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		return r.hostWorkers(c.Context(), o, &workers, flags)
	}
	return c
}

// hostWorkers hosts workers until there is nothing for them here, and prints what happens meanwhile. The settings
// are those of the run that is going on, except for what the flags say about the workers.
func (r runCommands) hostWorkers(
	ctx context.Context, o opened, workers *team.Workers, flags map[string]string,
) error {
	settings, err := r.runSettings(ctx, o, flags, true)
	if err != nil {
		return err
	}
	// Events of the whole team are printed, not only those of the members in this process.
	out := newRunOutput(ctx, r.App, o.Team, false)
	// It has a configuration of its own, with the model for the workers. The one in o only looks.
	t, err := r.openTeam( //nolint:contextcheck // Opening starts nothing.
		Job{Workspace: o.workspace, Settings: settings, Emit: out.emit})
	if err != nil {
		return err
	}
	var why team.Ending
	// left is why this process left the team; err is what stopped it from watching.
	var left error
	if err := out.during(ctx, func() { why, left = t.Join(ctx, workers) }); err != nil {
		return err
	}
	switch {
	// It is no failure of the team: its other processes go on with the workers.
	case errors.Is(left, muster.CauseUser):
		names := view.Join(workers.Names, ", ", func(n muster.Name) string { return string(n) })
		explain(r.Stderr, "left; the team's other processes take "+names+" over", "")
		return exitStatus(exitInterrupted)
	case left != nil:
		return left
	}
	_, err = fmt.Fprintf(r.Stdout, "%s left: %s\n", view.Count(len(workers.Names), "worker"), why)
	return ignoreEPIPE(err)
}
