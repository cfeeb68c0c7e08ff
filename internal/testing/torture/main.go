package torture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/cli"
	"muster/internal/failpoint"
	"muster/internal/testing/faultinject"
)

// command starts the crash tests from the root of the source.
const command = "go run -tags failpoint ./cmd/muster-torture"

// The exit codes are those of muster.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// The processes of a session are the same program with one of these first arguments. They read MUSTER_FAULT.
const (
	roleMuster = "muster" // the installed program, with failpoints
	roleWorker = "worker" // does the job that the second argument describes
)

// Main runs the crash tests, or one of their processes if args begin with a role, and returns the exit code.
func Main(args []string) int {
	if !failpoint.Enabled {
		fmt.Fprintf(os.Stderr, "muster-torture: this build has no failpoints, so start it with: %s\n", command)
		return exitUsage
	}
	if len(args) > 0 && (args[0] == roleMuster || args[0] == roleWorker) {
		if err := faultinject.Arm(); err != nil {
			return explain(err, exitUsage)
		}
	}
	if len(args) > 0 && args[0] == roleMuster {
		os.Args = append(os.Args[:1:1], args[1:]...)
		return cli.Main()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == roleWorker {
		return explain(work(ctx, strings.Join(args[1:], " ")), exitError)
	}
	s, err := newSession(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		return exitUsage // it is printed with the usage
	}
	if err = s.run(ctx, os.Stdout); err != nil && ctx.Err() != nil {
		return exitInterrupted
	}
	return explain(err, exitError)
}

// explain prints err and its hint and returns code, or exitDone if err is nil.
func explain(err error, code int) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(os.Stderr, "muster-torture:", err)
	var e *muster.Error
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Fprintln(os.Stderr, "       ", e.Hint)
	}
	return code
}

// newSession returns the session that the arguments describe.
func newSession(args []string) (*session, error) {
	s := &session{}
	f := flag.NewFlagSet("muster-torture", flag.ContinueOnError)
	f.Float64Var(&s.minutes, "minutes", 1, "about how long, in minutes; ten have the full amounts, fewer their share")
	f.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano())%1_000_000+1, "the seed of its random numbers")
	var names []string
	for _, sc := range scenarios {
		names = append(names, sc.name)
	}
	f.StringVar(&s.only, "only", "", "these `scenarios`, with commas between: "+strings.Join(names, ", "))
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	isUnknown := func(name string) bool { return !slices.Contains(names, name) }
	if f.NArg() > 0 || s.minutes < 0 || s.only != "" && slices.ContainsFunc(strings.Split(s.only, ","), isUnknown) {
		f.Usage()
		return nil, errors.New("wrong usage")
	}
	return s, nil
}
