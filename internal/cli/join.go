package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/team"
)

func (a *App) joinCommand() *cobra.Command {
	var w team.Workers
	c := &cobra.Command{Use: "join", Short: "add a process with workers to the team at work here", Args: exactly(),
		Long: "The workers, worker-1 and so on, claim tasks as every teammate does. Teammates of a process that dies are taken\n" +
			"over by one that lives. Ends when the run is over, or the workers have shut down; Ctrl-C leaves them to the team's\n" +
			"other processes."}
	f := c.Flags()
	f.String("model", "", "`MODEL` of the workers (default: the run's)")
	f.IntVar(&w.N, "teammates", 1, "how many workers")
	f.StringVar(&w.Role, "role", "worker", "`ROLE` of the workers: tasks for another role are not theirs")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if w.N < 1 {
			return &usageError{c.CommandPath(), "--teammates is how many workers join: at least 1"}
		}
		flags := given(f)
		delete(flags, "teammates") // the run's own cap is another thing
		return a.join(c.Context(), &w, flags)
	}
	return c
}

// join hosts workers until there is nothing for them here, and tells what happens meanwhile.
func (a *App) join(ctx context.Context, w *team.Workers, flags map[string]string) error {
	p, err := a.change(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	j := Job{Dir: string(p.home), Store: p.store}
	if j.Settings, err = a.settings(j.Dir, flags); err != nil {
		return err
	}
	run, err := p.run(ctx)
	if err != nil {
		return err
	}
	if err := goOn(run, flags, &j.Settings); err != nil {
		return err
	}
	out := a.teller(context.WithoutCancel(ctx), p, j)
	j.Emit = out.Unwritten
	t, err := a.openTeam(ctx, j)
	if err != nil {
		return err
	}
	from, err := p.journal.Tail(ctx, 0)
	if err != nil {
		return err
	}
	unattended()
	var why team.Ending
	done := make(chan struct{})
	go func() {
		defer close(done)
		why, err = t.Join(ctx, w)
	}()
	a.watch(ctx, p, from, done, out)
	switch {
	case errors.Is(err, muster.CauseUser):
		explain(a.Stderr, "left; the team's other processes take "+strings.Join(words(w.Names), ", ")+" over", "")
		return status(exitInterrupted)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s left: %s\n", view.Count(len(w.Names), "worker"), why)
	return unread(err)
}

func words(names []muster.Name) (all []string) {
	for _, n := range names {
		all = append(all, string(n))
	}
	return all
}
