// Package detach lets a program leave its terminal while it goes on.
//
// A shell waits for the process that it has started, so that process has to end before the shell comes back. The
// program therefore runs in a child of it: Foreground starts the program once more and waits. The child does all the
// work on the same terminal, in the same process group. When it wants to go on without the terminal it calls
// Terminal.Leave. The first process then ends, and the shell comes back, while nothing of the child has been
// interrupted.
//
// A pipe binds the two. The child writes to it when it leaves. The child can also tell by it that the first process was
// killed, because the pipe then ends; the child then behaves as if the terminal had been closed.
package detach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/term"
)

// variable tells the child which of its file descriptors is the pipe's.
const variable = "MUSTER_FOREGROUND"

// left is what the child writes when it leaves the terminal.
const left = "left\n"

// Foreground runs the program again with args and env, as a child on the same terminal, and returns its exit code when
// it has ended or has left the terminal. Where the child was killed, the terminal gets back the mode that it had,
// unless this process is in the background of its shell. An error means that no child could be started.
func Foreground(args, env []string) (code int, err error) {
	switch {
	case os.Getenv(variable) != "": // a child that started a child would never end
		return 0, errors.New("this process was started by one that waits for it already")
	case os.Getpid() == 1: // when the first process of a container ends, the system kills all others
		return 0, errors.New("no process outlives the first one of a container")
	}
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("this program cannot be found: %w", err)
	}
	ours, theirs, err := pair()
	if err != nil {
		return 0, fmt.Errorf("the process of the conversation cannot be reached: %w", err)
	}
	// The pipe lives as long as this process: its end tells the child that this process is gone.
	defer ours.Close()
	mode, modeErr := term.GetState(os.Stdin.Fd())
	c := exec.Command(self, args...)
	c.Args[0] = os.Args[0] // a program may have several names, and do something else by each
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.ExtraFiles = []*os.File{theirs}
	c.Env = append(env[:len(env):len(env)], variable+"=3") // the first of ExtraFiles
	// Signals are passed on from before the child lives, so that none is lost. One that comes before is waiting then.
	signals, stop := notify()
	defer stop()
	if err := c.Start(); err != nil {
		_ = theirs.Close()
		return 0, fmt.Errorf("the process of the conversation cannot be started: %w", err)
	}
	// With a copy here the pipe would not end with the child.
	_ = theirs.Close() // the child has its own
	code, isKilled := await(c, ours, signals)
	if isKilled && modeErr == nil && hasTerminal(os.Stdin.Fd()) {
		_ = term.Restore(os.Stdin.Fd(), mode)
		giveBack(os.Stdout)
	}
	return code, nil
}

// await passes signals on to the child until it has left the terminal or has ended, and returns its exit code. A child
// that has left goes on without this process.
func await(c *exec.Cmd, ours *os.File, signals <-chan os.Signal) (code int, isKilled bool) {
	hasLeft := make(chan bool, 1)
	go func() {
		// The pipe ends without a word when the child ends.
		said := make([]byte, len(left))
		n, _ := ours.Read(said)
		hasLeft <- string(said[:n]) == left
	}()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = c.Process.Signal(s) // it may have ended
		case is := <-hasLeft:
			if is {
				return 0, false
			}
			hasLeft = nil
		case err := <-ended:
			// A child that has left and ended at once has ended in the background: its code is nobody's here. The pipe
			// has ended with the child, so this does not wait.
			if hasLeft != nil && <-hasLeft {
				return 0, false
			}
			return exitCode(err)
		}
	}
}

// giveBack ends on a terminal what a child may have begun that was killed: its row, pasting in brackets, and a hidden
// cursor. A shell does not end them by itself.
func giveBack(out *os.File) {
	if term.IsTerminal(out.Fd()) {
		_, _ = out.WriteString("\r\n\x1b[J\x1b[?2004l\x1b[?25h") // a terminal that is gone needs nothing
	}
}

// outputWait is how long Output waits for the end of what is printed, after the program has ended: what the program has
// left running may keep its output open for hours.
const outputWait = time.Second

// Output runs the program again in a directory, without a terminal, and returns all that it has printed. It is for a
// command that leaves something running in the background.
func Output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program cannot be found: %w", err)
	}
	c := exec.CommandContext(ctx, self, args...)
	c.Args[0] = os.Args[0] // as in Foreground
	// A team in the background keeps none of this open, but a member of it may, for a moment.
	c.Dir, c.Env, c.WaitDelay = dir, env, outputWait
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // the program itself has ended well
		err = nil
	}
	return string(out), err
}

// exitCode returns the exit code of a child as a shell has it, and whether a signal has ended the child.
func exitCode(err error) (code int, isKilled bool) {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, false
	case !ok:
		return 1, false
	case exit.ExitCode() >= 0:
		return exit.ExitCode(), false
	}
	return killedBy(exit), true
}

// Terminal is the terminal of a process that Foreground has started.
type Terminal struct {
	pipe    *os.File
	hasLeft atomic.Bool // set before the first process is told, so its end is not taken for its death
}

// FromEnv returns the terminal that this process can leave, and the environment without the variable that says so. It
// returns nil in a process that Foreground has not started. What this process starts does not see the variable.
func FromEnv(env []string) (t *Terminal, rest []string) {
	_ = os.Unsetenv(variable) // it fails for an empty name only
	for _, kv := range env {
		value, is := strings.CutPrefix(kv, variable+"=")
		if !is {
			rest = append(rest, kv)
			continue
		}
		if fd, err := strconv.Atoi(value); err == nil && isPipe(fd) {
			t = &Terminal{pipe: os.NewFile(uintptr(fd), "foreground")}
		}
	}
	return t, rest
}

// Context returns a context that ends with cause when the first process was killed, as if the terminal had been closed.
func (t *Terminal) Context(ctx context.Context, cause error) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := t.pipe.Read(make([]byte, 1)) // the first process never writes
		if err != nil && !t.hasLeft.Load() {
			cancel(cause)
		}
	}()
	return ctx, cancel
}
