// Command muster-torture kills and stops the processes of throw-away teams, and compares what they leave behind
// with what they had promised. It needs failpoints, so it is started from the source:
//
//	go run -tags failpoint ./cmd/muster-torture
//
// The processes that it starts are this program too. Its first argument chooses what it is: "muster" is the program
// that people install, with failpoints, and "worker" is a worker of internal/testing/torture. Both read
// MUSTER_FAULT.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/cli"
	"muster/internal/failpoint"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/torture"
	"muster/store/file"
)

// The exit codes are those of muster.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// The first arguments that choose another role than running the crash tests.
const (
	roleMuster = "muster"
	roleWorker = "worker"
)

const usage = `Kill and stop processes of throw-away teams, and look what was lost.

It works in a directory of its own, never on this repository. Ten minutes have the full amounts, fewer
their share. At the first violation it ends with exit code 1, and the directory is kept.

Usage:
  ` + torture.Command + ` [flags]

Flags:
`

func main() {
	proc.GuardMain()
	os.Exit(run(os.Args[1:]))
}

// run chooses the role of this process and returns its exit code.
func run(args []string) int {
	if !failpoint.Enabled {
		fmt.Fprintf(os.Stderr, "muster-torture: this build has no failpoints, so start it with: %s\n", torture.Command)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 || args[0] != roleMuster && args[0] != roleWorker {
		return crash(ctx, args)
	}
	if err := faultinject.Arm(); err != nil {
		fmt.Fprintln(os.Stderr, "muster:", err)
		return exitUsage
	}
	if args[0] == roleMuster {
		stop() // the program handles its signals
		os.Args = append(os.Args[:1:1], args[1:]...)
		return cli.Main()
	}
	if err := torture.Work(ctx, openStore, strings.Join(args[1:], " ")); err != nil {
		return explain(err)
	}
	return exitDone
}

// openStore opens the store that teams use.
func openStore(root string) (muster.Store, error) { return file.Open(root) }

// crash runs the crash tests, prints the table and returns the exit code.
func crash(ctx context.Context, args []string) int {
	self, err := os.Executable()
	if err != nil {
		return explain(err)
	}
	c := torture.Config{Muster: []string{self, roleMuster}, Worker: []string{self, roleWorker}, Open: openStore,
		Env: append(os.Environ(), "MUSTER_SANDBOX_ENABLED=false")} // a sandbox would only make commands slower
	f := flag.NewFlagSet("muster-torture", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage)
		f.PrintDefaults()
	}
	f.Float64Var(&c.Minutes, "minutes", 1, "about how long, in minutes")
	f.Uint64Var(&c.Seed, "seed", uint64(time.Now().UnixNano())%1_000_000+1, "the seed of its random numbers")
	f.StringVar(&c.Dir, "dir", "", "an empty or new `directory` to work in (default a temporary one)")
	only := f.String("only", "", "these `scenarios`, with commas between: "+strings.Join(torture.Scenarios(), ", "))
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitUsage
	}
	if f.NArg() > 0 || c.Minutes < 0 {
		f.Usage()
		return exitUsage
	}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	isTemporary := c.Dir == ""
	if isTemporary {
		if c.Dir, err = os.MkdirTemp("", "muster-torture-"); err != nil {
			return explain(err)
		}
	}
	fmt.Fprintf(os.Stderr, "muster-torture: seed %d, in %s\n", c.Seed, c.Dir)
	c.Row = func(r torture.Row) {
		fmt.Fprintf(os.Stderr, "%-9s %d %s, %d kills, %d stops in %.0fs\n", r.Scenario, r.Operations, r.What, r.Kills,
			r.Stops, r.Took.Seconds())
	}
	rows, err := torture.Run(ctx, c)
	if err != nil && ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		return explain(err)
	}
	printTable(rows)
	if last := rows[len(rows)-1]; last.Bad() {
		fmt.Fprintf(os.Stderr, "muster-torture: %s: %s\nThe state is kept in %s.\n", last.Scenario,
			strings.Join(last.Violations, "\n"), last.Evidence)
		fmt.Fprintf(os.Stderr, "Again: %s -only %s -seed %d -minutes %g\n", torture.Command, last.Scenario, c.Seed,
			c.Minutes)
		return exitError
	}
	if isTemporary {
		_ = os.Remove(c.Dir) // an empty directory that stays does no harm
	}
	return exitDone
}

// printTable prints one line for each scenario.
func printTable(rows []torture.Row) {
	fmt.Println("SCENARIO     OPERATIONS  KILLS  AT POINTS  STOPS  REFUSED  LOST  DOUBLED  STUCK  RECOVERY  SLOWEST" +
		"   TIME")
	for _, r := range rows {
		fmt.Printf("%-9s %7d %-5s %6d %10d %6d %8d %5d %8d %6d %9s %8s %5.0fs\n", r.Scenario, r.Operations, r.What,
			r.Kills, r.AtPoints, r.Stops, r.Refused, r.Lost, r.Doubled, r.Stuck, seconds(r.Median), seconds(r.Worst),
			r.Took.Seconds())
	}
}

// seconds returns "" for what was not measured.
func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}

// explain prints the error and its hint, and returns the exit code.
func explain(err error) int {
	fmt.Fprintln(os.Stderr, "muster-torture:", err)
	var e *muster.Error
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Fprintln(os.Stderr, "       ", e.Hint)
	}
	return exitError
}
