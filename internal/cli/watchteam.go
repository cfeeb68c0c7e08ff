package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"muster"
	"muster/internal/detach"
	"muster/internal/view"
	"muster/internal/watch"
)

// startWait is how long the output of a command that began a team may stay open after it has ended.
const startWait = 5 * time.Second

// watchCommands returns what the full screen does about a whole team with commands, or nil where it cannot.
func watchCommands(a *App, o opened) watch.Commands {
	c := watch.Commands{Merge: func(ctx context.Context) (string, error) {
		out, code := runWithin(ctx, a, o.Root(), &view.Screen{}, "merge")
		if code != exitDone {
			return "", errors.New(strings.TrimSpace(out))
		}
		return strings.TrimSpace(out), nil
	}}
	if detach.IsPossible {
		c.Run = func(ctx context.Context, goal string) error {
			return inChild(ctx, a, o.Root(), "run", "--background", "--", goal)
		}
		c.Resume = func(ctx context.Context) error { return inChild(ctx, a, o.Root(), "resume", "--background") }
	}
	return c
}

// inChild runs a command in a child process, away from the terminal. It must be one that ends once its team works in
// the background. The error says what the command has printed where it failed.
func inChild(ctx context.Context, a *App, dir string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return muster.Errorf(muster.Invalid, "the program cannot be found: %s", muster.PlainText(err))
	}
	var out bytes.Buffer
	// Whoever leaves the screen meanwhile has asked for the team all the same, so ctx does not end its start.
	c := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	c.Args[0] = os.Args[0] // a program may have several names, and do something else by each
	c.Dir, c.Env, c.Stdout, c.Stderr, c.WaitDelay = dir, a.Env, &out, &out, startWait
	switch err := c.Run(); {
	// The team may hold the output open for a moment longer than its first process lives.
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case out.Len() > 0:
		return errors.New(strings.TrimSpace(a.secrets.String(out.String())))
	default:
		return err
	}
}
