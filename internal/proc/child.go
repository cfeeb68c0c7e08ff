package proc

import (
	"context"
	"sync"
)

// child is a started program as its starter sees it.
type child struct {
	pid  int
	stop func() error // kills the tree; called at any time, also when it is over

	mu    sync.Mutex
	cause error // of the ctx that ended it

	done chan struct{} // closed when exit and err are final
	exit int
	err  error
}

func newChild() *child { return &child{done: make(chan struct{})} }

func (c *child) PID() int { return c.pid }

func (c *child) Wait() (int, error) {
	<-c.done
	return c.exit, c.err
}

func (c *child) Kill() error {
	select {
	case <-c.done:
		return nil
	default:
		return c.stop()
	}
}

// follow kills c at the end of ctx; the caller calls the returned function when c is over.
func (c *child) follow(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.cause = context.Cause(ctx)
		c.mu.Unlock()
		_ = c.Kill() // a guard that cannot be told is dead, and then everything is
	})
}

// end makes the outcome final. The first of these reasons is what Wait returns: why it was killed, what the guard said,
// what its output said.
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
