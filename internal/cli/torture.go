package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/testing/torture"
	"muster/internal/view"
	"muster/store/file"
)

func openStore(root string) (muster.Store, error) { return file.Open(root) }

// tortureCommand kills teams of this program on purpose.
func (a *App) tortureCommand() *cobra.Command {
	var t torture.Config
	c := &cobra.Command{Use: "torture", Short: "kill and stop processes of throw-away teams, and look what was lost", Args: exactly(),
		Long: "It works in a directory of its own, never on this repository. Ten minutes have the whole amounts, fewer\n" +
			"their share. At the first violation it ends with exit code 1, and the directory is kept."}
	f := c.Flags()
	f.Float64Var(&t.Minutes, "minutes", 1, "about how long, in minutes `M`")
	f.Uint64Var(&t.Seed, "seed", 0, "the `SEED` of its dice; 0: another one each time")
	f.StringVar(&t.Dir, "dir", "", "an empty or new `DIR` to work in (a temporary one)")
	f.StringSliceVar(&t.Only, "only", nil, "these `SCENARIOS`: "+strings.Join(torture.Scenarios(), ", "))
	f.StringVar(&t.Mutant, "mutant", "", "break the workers")
	_ = f.MarkHidden("mutant")
	c.RunE = func(c *cobra.Command, _ []string) error { return a.torture(c.Context(), t) }
	return c
}

func (a *App) torture(ctx context.Context, t torture.Config) error {
	self, err := os.Executable()
	if err != nil {
		return muster.Errorf(muster.Unavailable, "this program cannot find itself: %w", err)
	}
	t.Self, t.Env, t.Open = []string{self}, a.Env, openStore
	if t.Seed == 0 {
		t.Seed = uint64(a.Now().UnixNano())%1_000_000 + 1
	}
	if t.Minutes < 0 {
		return &usageError{"muster torture", "--minutes wants a number from 0"}
	}
	made := t.Dir == ""
	if made {
		if t.Dir, err = os.MkdirTemp("", "muster-torture-"); err != nil {
			return muster.Errorf(muster.Unavailable, "no temporary directory can be made: %w", err)
		}
	}
	fmt.Fprintf(a.Stderr, "muster torture: seed %d, in %s\n", t.Seed, t.Dir)
	began := a.Now()
	t.Row = func(r torture.Row) {
		fmt.Fprintf(a.Stderr, "%6.1fs %-9s %s, %s, %s\n", a.Now().Sub(began).Seconds(), r.Scenario, view.Count(r.Operations, strings.TrimSuffix(r.What, "s")), view.Count(r.Kills, "kill"), view.Count(r.Stops, "stop"))
	}
	rows, failed := torture.Run(ctx, t)
	bad := len(rows) > 0 && rows[len(rows)-1].Bad()
	if made && !bad && failed == nil {
		_ = os.Remove(t.Dir)
	}
	if err := a.print(rows, func(w io.Writer, p view.Paint, width int) error { return writeTorture(w, p, width, rows) }); err != nil {
		return err
	}
	if failed != nil || !bad {
		return failed
	}
	last := rows[len(rows)-1]
	explain(a.Stderr, fmt.Sprintf("%s: %s", last.Scenario, strings.Join(last.Violations, "\n")),
		fmt.Sprintf("the state is kept in %s\nagain: muster torture --only %s --seed %d --minutes %g", last.Evidence, last.Scenario, t.Seed, t.Minutes))
	return status(exitError)
}

func writeTorture(w io.Writer, p view.Paint, width int, rows []torture.Row) error {
	t := view.Table{Titles: []string{"SCENARIO", ">OPERATIONS", "", ">KILLS", ">AT POINTS", ">STOPS", ">REFUSED", ">LOST", ">DOUBLED", ">STUCK", ">RECOVERY", ">SLOWEST", ">TIME"}, Wide: -1}
	count := func(n int) view.Cell {
		if n > 0 {
			return view.Cell{Text: fmt.Sprint(n), Tone: view.Bad}
		}
		return view.Text("0")
	}
	for _, r := range rows {
		t.Row(view.Text(r.Scenario), view.Text(fmt.Sprint(r.Operations)), view.Text(r.What), view.Text(fmt.Sprint(r.Kills)),
			view.Text(fmt.Sprint(r.AtPoints)), view.Text(fmt.Sprint(r.Stops)), view.Text(fmt.Sprint(r.Refused)), count(r.Lost), count(r.Doubled),
			count(r.Stuck), view.Text(recovered(r.Median)), view.Text(recovered(r.Max)), view.Text(fmt.Sprintf("%.0fs", r.Seconds)))
	}
	return t.Write(w, p, width)
}

// recovered is a time of recovery, "" when nothing was killed.
func recovered(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.2fs", seconds)
}

// tortureWorker is one process of a torture.
func (a *App) tortureWorker() *cobra.Command {
	return &cobra.Command{Use: "torture-worker JOB", Hidden: true, Args: exactly("JOB"), RunE: func(c *cobra.Command, args []string) error {
		return torture.Work(c.Context(), openStore, args[0])
	}}
}
