package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"muster"
	"muster/internal/testing/torture"
	"muster/internal/view"
)

const description = `Kill and stop processes of throw-away teams, and look what was lost.

It works in a directory of its own, never on this repository. Ten minutes have the whole amounts, fewer
their share. At the first violation it ends with exit code 1, and the directory is kept.

Usage:
  ` + torture.Command + ` [flags]

Flags:
`

// options are the flags of the command.
type options struct {
	torture.Config
	json, noColor bool
}

// parse reads the flags. It returns pflag.ErrHelp after it has printed the help.
func parse(args []string) (options, error) {
	var o options
	f := pflag.NewFlagSet("muster-torture", pflag.ContinueOnError)
	f.SortFlags = false
	f.Float64Var(&o.Minutes, "minutes", 1, "about how long, in minutes `M`")
	f.Uint64Var(&o.Seed, "seed", 0, "the `SEED` of its random numbers; 0: another one each time")
	f.StringVar(&o.Dir, "dir", "", "an empty or new `DIR` to work in (a temporary one)")
	f.StringSliceVar(&o.Only, "only", nil, "these `SCENARIOS`: "+strings.Join(torture.Scenarios(), ", "))
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.noColor, "no-color", false, "print without colour")
	f.StringVar(&o.Mutant, "mutant", "", "break the workers")
	f.Usage = func() { fmt.Fprint(os.Stdout, description, f.FlagUsages()) }
	if err := f.MarkHidden("mutant"); err != nil {
		return o, err
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("muster-torture does not take %q", f.Arg(0))
	}
	if o.Minutes < 0 {
		return o, errors.New("--minutes wants a number from 0")
	}
	return o, nil
}

// runCommand runs the crash tests, prints the table and returns the exit code.
func runCommand(ctx context.Context, args []string) int {
	o, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		explain(err.Error(), torture.Command+" --help")
		return exitUsage
	}
	code, err := o.run(ctx)
	if err != nil && ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		explain(err.Error(), hint(err))
		return exitError
	}
	return code
}

// run runs the scenarios and prints what came of them. The error is about the crash tests themselves; a violation is an
// exit code.
func (o *options) run(ctx context.Context) (code int, err error) {
	temporary := o.Dir == ""
	if err := o.prepare(); err != nil {
		return exitError, err
	}
	fmt.Fprintf(os.Stderr, "muster-torture: seed %d, in %s\n", o.Seed, o.Dir)
	rows, err := torture.Run(ctx, o.Config)
	isBad := len(rows) > 0 && rows[len(rows)-1].Bad()
	if temporary && !isBad && err == nil {
		_ = os.Remove(o.Dir) // an empty directory that stays does no harm
	}
	if err := o.print(rows); err != nil {
		return exitError, err
	}
	if err != nil || !isBad {
		return exitDone, err
	}
	last := rows[len(rows)-1]
	explain(fmt.Sprintf("%s: %s", last.Scenario, strings.Join(last.Violations, "\n")),
		fmt.Sprintf("the state is kept in %s\nagain: %s --only %s --seed %d --minutes %g",
			last.Evidence, torture.Command, last.Scenario, o.Seed, o.Minutes))
	return exitError, nil
}

// prepare fills in what the flags do not say: the directory, the seed and how processes are started.
func (o *options) prepare() error {
	self, err := os.Executable()
	if err != nil {
		return muster.Errorf(muster.Unavailable, "this program cannot find itself: %w", err)
	}
	o.Muster, o.Worker = []string{self, roleMuster}, []string{self, roleWorker}
	// What is tortured is the state; a sandbox would only make each command slower.
	o.Env, o.Open = append(os.Environ(), "MUSTER_SANDBOX_ENABLED=false"), openStore
	began := time.Now()
	if o.Seed == 0 {
		o.Seed = uint64(began.UnixNano())%1_000_000 + 1
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "muster-torture-"); err != nil {
			return muster.Errorf(muster.Unavailable, "no temporary directory can be made: %w", err)
		}
	}
	o.Row = func(r torture.Row) {
		fmt.Fprintf(os.Stderr, "%6.1fs %-9s %s, %s, %s\n", time.Since(began).Seconds(), r.Scenario,
			view.Count(r.Operations, strings.TrimSuffix(r.What, "s")), view.Count(r.Kills,
				"kill"), view.Count(r.Stops, "stop"))
	}
	return nil
}

// print writes the rows as JSON or as a table, in colour only on a terminal.
func (o *options) print(rows []torture.Row) error {
	if o.json {
		data, err := muster.Encode(rows)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(data)
		return err
	}
	width, isTerminal := view.TerminalWidth(os.Stdout)
	colour := isTerminal && !o.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	_, err := io.WriteString(os.Stdout, table(rows).Draw(view.Screen{Paint: view.Paint(colour), Width: width}))
	return err
}

// table returns one line for each scenario.
func table(rows []torture.Row) view.Table {
	t := view.Table{Titles: []string{"SCENARIO", ">OPERATIONS", "", ">KILLS", ">AT POINTS", ">STOPS", ">REFUSED",
		">LOST",
		">DOUBLED", ">STUCK", ">RECOVERY", ">SLOWEST", ">TIME"}, Wide: -1}
	violations := func(n int) view.Cell {
		if n > 0 {
			return view.Cell{Text: fmt.Sprint(n), Tone: view.Bad}
		}
		return view.Text("0")
	}
	recovery := func(seconds float64) view.Cell {
		if seconds == 0 { // nothing was killed
			return view.Text("")
		}
		return view.Text(fmt.Sprintf("%.2fs", seconds))
	}
	for _, r := range rows {
		t.Row(r.Scenario, r.Operations, r.What, r.Kills, r.AtPoints, r.Stops, r.Refused, violations(r.Lost),
			violations(r.Doubled), violations(r.Stuck), recovery(r.Median), recovery(r.Max),
			fmt.Sprintf("%.0fs", r.Seconds))
	}
	return t
}

// hint returns what to do about err: the hint that is nearest to its cause.
func hint(err error) string {
	var e *muster.Error
	if !errors.As(err, &e) {
		return ""
	}
	if deeper := hint(e.Err); deeper != "" {
		return deeper
	}
	return e.Hint
}

// explain prints what happened, then what to do.
func explain(message, hint string) {
	indent := func(s string) string {
		return strings.ReplaceAll(strings.TrimRight(view.ManyLines(s), "\n"), "\n", "\n        ")
	}
	fmt.Fprintf(os.Stderr, "muster-torture: %s\n", indent(message))
	if hint != "" {
		fmt.Fprintf(os.Stderr, "        %s\n", indent(hint))
	}
}
