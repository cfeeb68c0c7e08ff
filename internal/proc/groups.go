package proc

import (
	"context"
	"crypto/rand"
	"os"
	"sync"

	"muster"
)

// groups is the launcher without a guard: each program is the leader of a process group.
type groups struct {
	mu      sync.Mutex
	closed  bool
	running map[*child]bool
}

// newGroups returns a launcher that runs nothing yet.
func newGroups() *groups { return &groups{running: map[*child]bool{}} }

// Start starts a program in a process group of its own.
func (g *groups) Start(ctx context.Context, s Spec) (Process, error) {
	return startWith(ctx, s, g.start)
}

// start starts the program and follows it to its end. The lock is held, so that Close sees every program that has
// started.
func (g *groups) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed()
	}
	tag := rand.Text()
	p, err := os.StartProcess(path, s.Argv, &os.ProcAttr{
		Dir:   s.Dir,
		Env:   setTag(s.Env, tag),
		Files: []*os.File{pipes.in, pipes.out, pipes.out},
		Sys:   newSession(),
	})
	if err != nil {
		return nil, startError(s, err)
	}
	// From here the program runs. If its tree cannot be watched it is killed at once: it could not be stopped later.
	t, err := newTree(p, tag)
	if err != nil { // without its tree it could not be stopped
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, muster.Errorf(muster.Unavailable, "cannot watch over %s: %w", s.Argv[0], err)
	}
	c := newChild()
	c.pid, c.stop = p.Pid, t.kill
	pipes.begin(s)
	release := c.killWith(ctx)
	g.running[c] = true
	// The order matters: the tree is dead, then the output has arrived, then Wait returns.
	go func() {
		state, err := t.wait(p)
		output := pipes.finish()
		release()
		g.mu.Lock()
		delete(g.running, c)
		g.mu.Unlock()
		if err != nil {
			c.end(-1, muster.Errorf(muster.Unavailable, "the outcome of %s is unknown: %w", s.Argv[0], err), nil)
			return
		}
		c.end(exitStatus(state), nil, output)
	}()
	return c, nil
}

// Close kills everything that runs and waits until it is dead.
func (g *groups) Close() error {
	g.mu.Lock()
	g.closed = true
	var all []*child
	for c := range g.running {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		_ = c.Kill()
	}
	for _, c := range all {
		_, _ = c.Wait()
	}
	return nil
}
