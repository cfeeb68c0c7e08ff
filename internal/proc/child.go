package proc

import (
	"context"
	"sync"
)

// child is a started program as its starter sees it. It is the Process of both launchers.
type child struct {
	pid  int
	stop func() error // kills the tree; called at any time, also when it is over

	mu    sync.Mutex
	cause error // of the ctx that ended it

	done chan struct{} // closed when exit and err are final
	exit int
	err  error
}

// newChild returns a child whose outcome is open.
func newChild() *child { return &child{done: make(chan struct{})} }

// PID returns the process id of the program itself.
func (c *child) PID() int { return c.pid }

// Wait waits until end has made the outcome final.
func (c *child) Wait() (int, error) {
	<-c.done
	return c.exit, c.err
}

// Kill kills the tree of a program that is not over.
func (c *child) Kill() error {
	select {
	case <-c.done:
		return nil
	default:
		return c.stop()
	}
}

// killWith kills c at the end of ctx. The caller calls the returned function when c is over.
func (c *child) killWith(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, func() {
		c.mu.Lock()
		// The cause is set before the kill, or Wait could report the exit status of a program that was cancelled.
		c.cause = context.Cause(ctx)
		c.mu.Unlock()
		_ = c.Kill() // a guard that cannot be told is dead, and then everything is
	})
}

// end makes the outcome final. Wait returns the first of these errors: why the program was killed, what the guard said,
// what copying its output said.
func (c *child) end(exit int, guard, output error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit, c.err = exit, guard
	switch {
	case c.cause != nil:
		c.err = c.cause
	case c.err == nil:
		c.err = output
	}
	close(c.done)
}
