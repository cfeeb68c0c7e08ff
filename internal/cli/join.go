package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
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
	c.RunE = func(c *cobra.Command, args []string) error {
		if workers.N < 1 {
			return &usageError{c.CommandPath(), "--teammates is how many workers join: at least 1"}
		}
		flags := setFlags(f)
		delete(flags, "teammates") // as a setting it is the run's own limit, which is another thing
		return r.changing(func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			return r.hostWorkers(c.Context(), w, &workers, flags)
		})(c, args)
	}
	return c
}

// hostWorkers hosts workers until there is nothing for them here, and prints what happens meanwhile. The settings
// are those of the run that is going on, except for what the flags say about the workers.
func (r runCommands) hostWorkers(
	ctx context.Context, w *workspace.Workspace, workers *team.Workers, flags map[string]string,
) (err error) {
	j := Job{Dir: w.Root(), Store: w.Store()}
	if j.Settings, _, err = w.Settings(flags); err != nil {
		return err
	}
	run, err := w.Runs().Look(ctx)
	if err != nil {
		return err
	}
	if err := applyRunSettings(run, flags, &j.Settings); err != nil {
		return err
	}
	out := r.newRunOutput(context.WithoutCancel(ctx), w, false)
	j.Emit = out.emit
	t, err := r.openTeam(ctx, j)
	if err != nil {
		return err
	}
	// Events of before this process joined are not printed.
	from, err := w.Journal().Tail(ctx, 0)
	if err != nil {
		return err
	}
	catchSIGPIPE()
	var why team.Ending
	out.during(ctx, from, func() { why, err = t.Join(ctx, workers) })
	switch {
	// It is no failure of the team: its other processes go on with the workers.
	case errors.Is(err, muster.CauseUser):
		explain(r.Stderr, "left; the team's other processes take "+joinNames(workers.Names, ", ")+" over", "")
		return exitStatus(exitInterrupted)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(r.Stdout, "%s left: %s\n", view.Count(len(workers.Names), "worker"), why)
	return ignoreEPIPE(err)
}
