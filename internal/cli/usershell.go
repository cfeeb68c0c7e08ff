package cli

import (
	"context"
	"io"

	"muster/internal/proc"
)

// userShell runs commands that the user types in a conversation: in the user's shell, where muster was started, with
// the user's environment. One command runs at a time.
type userShell struct {
	app *App
	// launcher is nil until the first command: most conversations have none.
	launcher proc.Launcher
}

// run runs a command to its end and returns its exit status. What it prints goes to out, without secrets. The command
// has no terminal and no input. The end of ctx kills all that it has started.
func (u *userShell) run(ctx context.Context, command string, out io.Writer) (exit int, err error) {
	if u.launcher == nil {
		// A conversation may end while the command runs, and close kills it then.
		if u.launcher, err = proc.New(context.WithoutCancel(ctx)); err != nil {
			return 0, err
		}
	}
	argv := proc.Shell(command)
	if shell := u.app.env("SHELL"); shell != "" {
		argv = []string{shell, "-c", command}
	}
	shown := u.app.secrets.Writer(out)
	p, err := u.launcher.Start(ctx, proc.Spec{Argv: argv, Dir: u.app.workDir(), Env: u.app.Env, Out: shown})
	if err != nil {
		return 0, err
	}
	exit, err = p.Wait()
	_ = shown.Flush() // out never fails
	return exit, err
}

// close kills what still runs.
func (u *userShell) close() {
	if u.launcher != nil {
		_ = u.launcher.Close()
	}
}
