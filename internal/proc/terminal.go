package proc

import (
	"context"
	"os"
	"os/exec"
)

// RunAtTerminal runs a program of the user's, such as an editor, at the user's terminal, and waits for its end. Unlike
// what a Launcher starts, it stays in the session of this process. Stdin and Out of the Spec are not used.
func RunAtTerminal(ctx context.Context, s Spec, in, out *os.File) error {
	c := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = s.Dir, s.Env, in, out, out
	return c.Run()
}
