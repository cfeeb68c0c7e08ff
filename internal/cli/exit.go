package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// The exit codes. Scripts rely on them, and docs list them.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2   // the command line makes no sense; nothing was done
	exitLeft        = 3   // the run stopped with work left
	exitInterrupted = 130 // by the user, as a shell has it for Ctrl-C; the state is kept
)

// usageError is the error of a command line that makes no sense. Nothing was done when it is returned, and the
// program exits with 2.
type usageError struct {
	command string // whose --help helps
	message string
}

// Error returns the message. The hint at the help is added by exit, which knows that a person reads it.
func (e *usageError) Error() string { return e.message }

// exitStatus is the error that ends a command with an exit code when everything was printed already. It passes
// through cobra like any error, so that deferred calls run before the process ends.
type exitStatus int

// Error returns a text that only tests see.
func (s exitStatus) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// exit returns the program's exit code. It prints err first, unless the user has interrupted the program or
// everything was printed already. The order of the cases matters: an exit code that a command has chosen holds even
// after an interruption, because the command has reported the interruption itself.
func (a *App) exit(ctx context.Context, err error) int {
	var usage *usageError
	var code exitStatus
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		explain(a.Stderr, usage.message, usage.command+" --help")
		return exitUsage
	// A command that fails because its context has ended was interrupted too, whatever its error says.
	case errors.Is(err, muster.CauseUser), ctx.Err() != nil && errors.Is(context.Cause(ctx), muster.CauseUser):
		return exitInterrupted
	}
	explain(a.Stderr, muster.PlainText(err), muster.HintOf(err))
	return exitError
}

// explain prints what happened, then what to do. Every error of the program has this form, with the hint on lines
// of its own. Control characters are made visible, because a message may quote what a model or a file says.
func explain(w io.Writer, message, hint string) {
	// Further lines are indented to the column where the first begins. A hint is not broken, because it is copied.
	message = strings.TrimRight(text.Clean(message), "\n")
	message = "muster: " + strings.ReplaceAll(message, "\n", "\n        ")
	if width, isTerminal := view.TerminalWidth(w); isTerminal {
		message = view.Hang(message, len("muster: "), width-1)
	}
	fmt.Fprintln(w, message)
	if hint = strings.TrimRight(text.Clean(hint), "\n"); hint != "" {
		fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(hint, "\n", "\n        "))
	}
}

// sameSignal is how soon after the first signal another one is taken for the same.
const sameSignal = 300 * time.Millisecond

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
		cancel(muster.CauseUser)
		// The terminal and the process of the foreground may both pass on one Ctrl-C. What comes later has the default
		// effect, and ends a program that hangs.
		time.Sleep(sameSignal)
		signal.Stop(signals)
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
