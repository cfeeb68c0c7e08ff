package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"muster"
	"muster/internal/view"
)

// The exit codes.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitLeft        = 3 // stopped with work left
	exitInterrupted = 130
)

// usageError is a command line that cannot be meant.
type usageError struct {
	command string // whose --help helps
	message string
}

func (e *usageError) Error() string { return e.message }

// status ends a command with an exit code when all has been said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// exit prints err, if it is one that people want to read, and returns the program's exit code.
func (a *App) exit(ctx context.Context, err error) int {
	var usage *usageError
	var code status
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		explain(a.Stderr, usage.message, usage.command+" --help")
		return exitUsage
	case errors.Is(err, muster.CauseUser), ctx.Err() != nil && errors.Is(context.Cause(ctx), muster.CauseUser):
		return exitInterrupted
	}
	explain(a.Stderr, err.Error(), hintOf(err))
	return exitError
}

// hintOf is what to do about err: the innermost hint, which is nearest to what is wrong. The sentence is the outermost.
func hintOf(err error) string {
	me, ok := errors.AsType[*muster.Error](err)
	if !ok {
		return ""
	}
	if deeper := hintOf(me.Err); deeper != "" {
		return deeper
	}
	return me.Hint
}

// explain prints what happened, then what to do.
func explain(w io.Writer, message, hint string) {
	message = strings.TrimRight(view.ManyLines(message), "\n")
	fmt.Fprintf(w, "muster: %s\n", strings.ReplaceAll(message, "\n", "\n        "))
	if hint = strings.TrimRight(view.ManyLines(hint), "\n"); hint != "" {
		fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(hint, "\n", "\n        "))
	}
}
