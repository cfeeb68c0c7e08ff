package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"muster"
)

// startWith checks s, opens what its program reads and writes, and has launch start it. The child closes what was
// opened when it is over; if there is none, startWith closes it.
func startWith(
	ctx context.Context, s Spec, launch func(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error),
) (Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, muster.Errorf(muster.Invalid, "no program was named")
	}
	// The system would cut an argument at a NUL byte, silently.
	hasNUL := func(t string) bool { return strings.Contains(t, "\x00") }
	if slices.ContainsFunc(slices.Concat(s.Argv, s.Env, []string{s.Dir}), hasNUL) {
		return nil, muster.Errorf(muster.Invalid, "an argument of %s contains a NUL byte", s.Argv[0])
	}
	path, err := findProgram(s.Argv[0], s.Env)
	if err != nil {
		return nil, err
	}
	pipes, err := openStdio(s)
	if err != nil {
		return nil, startError(s, err)
	}
	c, err := launch(ctx, s, path, pipes)
	if err != nil {
		pipes.abandon()
		return nil, err
	}
	return c, nil
}

// defaultPath is searched when the environment of a command has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// findProgram looks program up in the PATH of env, as a shell does. A program with a slash is not looked up. Relative
// entries of a PATH are passed over: a repository must not be able to put its own git in front of the real one.
func findProgram(program string, env []string) (string, error) {
	if filepath.Base(program) != program {
		return program, nil
	}
	for _, dir := range filepath.SplitList(cmp.Or(Variable(env, "PATH"), defaultPath)) {
		if full, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(dir) {
			return full, nil
		}
	}
	return "", muster.Errorf(muster.NotFound, "there is no program %q in PATH", program)
}

// startError returns the error of a start that the system refused. A missing working directory gives the same error as
// a missing program, so it is looked for.
func startError(s Spec, cause error) error {
	code, why := muster.Invalid, cause.Error()
	if path, ok := errors.AsType[*fs.PathError](cause); ok {
		why = path.Err.Error()
	}
	if errors.Is(cause, fs.ErrNotExist) {
		code = muster.NotFound
		if fi, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !fi.IsDir()) {
			why = "there is no directory " + s.Dir
		}
	}
	return &muster.Error{Code: code, Message: "cannot start " + s.Argv[0] + ": " + why, Err: cause}
}

func errClosed() error { return muster.Errorf(muster.Unavailable, "the launcher of tools is closed") }

// child is the Process of both launchers.
type child struct {
	pid  int
	stop func() error // kills the tree; called at any time, also when it is over

	done chan struct{} // closed when exit and err are final
	exit int
	err  error
}

// ExitStatus is the exit status as a shell says it.
func ExitStatus(s *os.ProcessState) int { return exitStatus(s.Sys().(syscall.WaitStatus)) }

func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// Then returns p, whose Wait passes on what f makes of its outcome. f is called once, when the first Wait has it.
func Then(p Process, f func(exit int, err error) (int, error)) Process {
	return &then{p, sync.OnceValues(func() (int, error) { return f(p.Wait()) })}
}

type then struct {
	Process
	wait func() (int, error)
}

func (t *then) Wait() (int, error) { return t.wait() }

// follow returns the child that is a program that has just started, and sees it to its end: it copies what the program
// reads and writes, and kills it at the end of ctx. ended waits until the whole tree is dead. reached is a text for
// each limit that the program was killed for: they become the last lines of its output.
//
// The order is what Wait promises: the tree is dead, then the output has arrived, then the outcome is final. Its error
// is the first of these: why the program was killed, what ended says, what copying its output said.
func follow(
	ctx context.Context, s Spec, pipes *stdio, pid int, stop func() error,
	ended func() (exit int, reached []string, err error),
) *child {
	c := &child{pid: pid, stop: stop, done: make(chan struct{})}
	pipes.begin(s, c.Kill)
	// A guard that cannot be told is dead, and then everything is.
	release := context.AfterFunc(ctx, func() { _ = c.Kill() })
	go func() {
		defer close(c.done)
		var reached []string
		c.exit, reached, c.err = ended()
		if output := pipes.finish(); c.err == nil {
			c.err = output
		}
		for _, text := range reached {
			if s.Out != nil {
				_, _ = fmt.Fprintf(s.Out, "[%s]\n", text)
			}
		}
		if !release() { // ctx ended first, so the exit status may be that of the kill
			c.err = context.Cause(ctx)
		}
	}()
	return c
}

func (c *child) PID() int { return c.pid }

func (c *child) Kill() error { return c.stop() }

func (c *child) Wait() (int, error) {
	<-c.done
	return c.exit, c.err
}

func (c *child) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
