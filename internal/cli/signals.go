package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"muster"
)

// interruptible returns a context that ends with muster.CauseUser at the first Ctrl-C, TERM or HUP. The second one
// kills the process, but for HUP: a terminal that closes sends it from several sides. The function that it returns
// must be called before the program ends. The first signal lets the team end its turn and write its state.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, hangups := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(hangups, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-signals:
		case <-hangups:
		case <-ctx.Done():
			return
		}
		signal.Stop(signals)
		// The handler of TERM and Ctrl-C is gone by now, so a second one has the default effect and ends a program
		// that hangs.
		cancel(muster.CauseUser)
	}()
	return ctx, func() { signal.Stop(signals); signal.Stop(hangups); cancel(nil) }
}

// catchSIGPIPE keeps the program alive, from here to its end, when nobody reads any more what it prints: a team works
// on without an audience, while a short command dies quietly. The signal is caught and not ignored, because what a
// process starts would inherit that.
func catchSIGPIPE() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// ignoreEPIPE returns the error of a write, or nil when it only says that nobody reads. The result of a run does
// not depend on whether anybody reads its summary.
func ignoreEPIPE(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
