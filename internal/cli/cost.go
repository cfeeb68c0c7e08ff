package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// newCostCommand returns muster cost. It shows the last run, whether it goes on or not.
func newCostCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "cost", Short: "what the calls of models have cost: by member, by task, by model",
		Args: namedArgs(),
		Long: "It counts the last run, with all that it has spent before it was resumed. INPUT is what no cache\n" +
			"had, CACHED what one had. Prices are those of the catalogue (muster models), or of your config.yaml.",
		RunE: a.looking(nil, func(c *cobra.Command, o opened, _ []string) error {
			s, err := readSpending(c.Context(), o.Team)
			if err == nil && s.Total.Calls == 0 && !a.json {
				return a.printLine(nil, nil, "no model was asked in the last run")
			}
			if err != nil {
				return err
			}
			return a.print(s, s.Draw)
		})}
}

func readSpending(ctx context.Context, t *team.Team) (view.Spending, error) {
	book, err := team.ReadSpending(ctx, t)
	run, errRun := t.LastRun(ctx)
	tasks, _, errTasks := t.Tasks().List(ctx)
	if err := cmp.Or(err, errRun, errTasks); err != nil {
		return view.Spending{}, err
	}
	if run.StartedAt == 0 {
		return view.Spending{}, workspace.ErrNoTeam
	}
	return view.NewSpending(run, t.Name(ctx), *book, tasks), nil
}
