package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/internal/redact"
	"muster/internal/workspace"
)

// paged makes a command show its output in the user's pager where it goes to a terminal, and gives it --no-pager. The
// output of a command with the flag except, such as one that follows what happens, is never paged.
func (a *App) paged(c *cobra.Command, except string) *cobra.Command {
	var off bool
	c.Flags().BoolVar(&off, "no-pager", false, "print to the terminal itself")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		out, _ := unwrapped(a.Stdout).(*os.File)
		// A command of the conversation does not end the process, and has no terminal of its own.
		if off || a.json || isPlain(a) || !a.endsProcess || !isTerminal(a.Stdout) || c.Flags().Changed(except) {
			return run(c, args)
		}
		command := pagerCommand(c.Context(), a.Env)
		if command == "" {
			return run(c, args)
		}
		p, shape, terminal := &pager{app: a, command: command, terminal: out}, a.screen(a.Stdout), a.Stdout
		if readsPatches(command) {
			shape.Width = 0
		}
		a.Stdout, a.screenShape = p, &shape
		err := run(c, args)
		a.Stdout, a.screenShape = terminal, nil
		p.close()
		if errors.Is(err, errPagerLeft) {
			return nil
		}
		return err
	}
	return c
}

// readsPatches reports whether a pager draws differences by itself, from what git prints into a pipe.
func readsPatches(command string) bool {
	words := strings.Fields(command)
	known := []string{"delta", "diff-so-fancy", "diffr", "riff", "ydiff", "difft"}
	return len(words) > 0 && slices.Contains(known, filepath.Base(words[0]))
}

func unwrapped(w io.Writer) io.Writer {
	if below, ok := w.(interface{ Unwrap() io.Writer }); ok { // one that hides secrets
		return below.Unwrap()
	}
	return w
}

// pager is a writer that starts a pager at the first write, so that a command that fails shows none.
type pager struct {
	app      *App
	command  string
	terminal *os.File
	cmd      *exec.Cmd
	pipe     io.WriteCloser
	hidden   *redact.Writer // hides secrets, before pipe
}

// errPagerLeft ends a command whose reader has left the pager.
var errPagerLeft = errors.New("the pager has ended")

// Write writes to the pager.
func (p *pager) Write(data []byte) (int, error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return 0, err
		}
	}
	n, err := p.hidden.Write(data)
	if err != nil {
		err = errPagerLeft
	}
	return n, err
}

// start starts the pager as git does: by the shell, with options for less where the user has none.
func (p *pager) start() (err error) {
	cmd := exec.Command("sh", "-c", p.command) //nolint:noctx // It ends when its reader leaves it.
	cmd.Dir, cmd.Env, cmd.Stdout = p.app.Dir, p.app.Env, p.terminal
	cmd.Stderr = unwrapped(p.app.Stderr)
	if _, isSet := lookup(cmd.Env, "LESS"); !isSet {
		cmd.Env = append(slices.Clone(cmd.Env), "LESS=FRX")
	}
	if p.pipe, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.hidden = cmd, p.app.secrets.Writer(p.pipe)
	signal.Ignore(os.Interrupt) // from here on Ctrl-C is for the pager
	return nil
}

// close waits until the reader has left the pager. Its exit status is ignored.
func (p *pager) close() {
	if p.cmd != nil {
		_, _ = p.hidden.Flush(), p.pipe.Close()
		_ = p.cmd.Wait()
	}
}

// pagerCommand returns the user's pager by git's rules, without the config of the repository. It is "" where the user
// wants none or has none.
func pagerCommand(ctx context.Context, environ []string) string {
	command, isSet := lookup(environ, "GIT_PAGER")
	if !isSet {
		command = workspace.UserPager(ctx, environ)
		isSet = command != ""
	}
	if !isSet {
		command, isSet = lookup(environ, "PAGER")
	}
	switch command = strings.TrimSpace(command); {
	case command == "cat":
		return ""
	case !isSet && hasProgram(environ, "less"):
		return "less -FRX"
	case !canStart(environ, command):
		return ""
	}
	return command
}

// canStart reports whether the program of a command is there, as far as its words say which it is.
func canStart(environ []string, command string) bool {
	name, _, _ := strings.Cut(command, " ")
	if command == "" || strings.ContainsAny(name, "$`\"'(;&|=~") { // the shell knows
		return true
	}
	if strings.Contains(name, "/") {
		_, err := exec.LookPath(name)
		return err == nil || !filepath.IsAbs(name)
	}
	return hasProgram(environ, name)
}

// lookup returns the value of a variable of an environment, and whether it is there.
func lookup(environ []string, name string) (value string, isSet bool) {
	for _, kv := range slices.Backward(environ) { // the last one holds, as for a process that is started
		if value, isSet = strings.CutPrefix(kv, name+"="); isSet {
			return value, true
		}
	}
	return "", false
}

func hasProgram(environ []string, name string) bool {
	path, _ := lookup(environ, "PATH")
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, name))
		return filepath.IsAbs(dir) && err == nil
	})
}
