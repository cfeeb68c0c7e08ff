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
	"fmt"
	"os"
	"os/signal"
	"syscall"

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
	role := ""
	if len(args) > 0 {
		role = args[0]
	}
	if role == roleMuster || role == roleWorker {
		if err := faultinject.Arm(); err != nil {
			fmt.Fprintln(os.Stderr, "muster:", err)
			return exitUsage
		}
	}
	if role == roleMuster {
		os.Args = append(os.Args[:1:1], args[1:]...)
		return cli.Main()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if role == roleWorker {
		return work(ctx, args[1:])
	}
	return runCommand(ctx, args)
}

// work is the role of a worker. Its only argument is the job.
func work(ctx context.Context, args []string) int {
	if len(args) != 1 {
		explain("a worker wants its job as the only argument", torture.Command)
		return exitUsage
	}
	if err := torture.Work(ctx, openStore, args[0]); err != nil {
		explain(err.Error(), hint(err))
		return exitError
	}
	return exitDone
}

// openStore opens the store that teams use.
func openStore(root string) (muster.Store, error) { return file.Open(root) }
