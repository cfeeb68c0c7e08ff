package proc

import "context"

// child is a started program as its starter sees it. It is the Process of both launchers.
type child struct {
	pid  int
	stop func() error // kills the tree; called at any time, also when it is over

	done chan struct{} // closed when exit and err are final
	exit int
	err  error
}

// follow returns the child that is a program that has just started, and sees it to its end: it copies what the program
// reads and writes, and kills it at the end of ctx. ended waits until the whole tree is dead.
//
// The order is what Wait promises: the tree is dead, then the output has arrived, then the outcome is final. Wait
// returns the first of these errors: why the program was killed, what ended says, what copying its output said.
func follow(
	ctx context.Context, s Spec, pipes *stdio, pid int, stop func() error, ended func() (exit int, err error),
) *child {
	c := &child{pid: pid, stop: stop, done: make(chan struct{})}
	pipes.begin(s)
	// A guard that cannot be told is dead, and then everything is.
	release := context.AfterFunc(ctx, func() { _ = c.Kill() })
	go func() {
		defer close(c.done)
		c.exit, c.err = ended()
		if output := pipes.finish(); c.err == nil {
			c.err = output
		}
		if !release() { // ctx ended first, so the exit status may be that of the kill
			c.err = context.Cause(ctx)
		}
	}()
	return c
}

// PID returns the process id of the program itself.
func (c *child) PID() int { return c.pid }

// Wait waits until the outcome is final.
func (c *child) Wait() (int, error) {
	<-c.done
	return c.exit, c.err
}

// Kill kills the tree of a program that is not over.
func (c *child) Kill() error {
	if c.isOver() {
		return nil
	}
	return c.stop()
}

// isOver reports whether the outcome is final.
func (c *child) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
