package proc

import (
	"context"
	"crypto/rand"
	"os"
	"sync"

	"muster"
)

// groups is the launcher without a guard.
type groups struct {
	mu      sync.Mutex
	closed  bool
	running map[*child]bool
}

func newGroups() *groups { return &groups{running: map[*child]bool{}} }

func (g *groups) Start(ctx context.Context, s Spec) (Process, error) {
	path, err := prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	pipes, err := plumb(s)
	if err != nil {
		return nil, refused(s, err)
	}
	c, err := g.start(ctx, s, path, pipes)
	if err != nil {
		pipes.abandon()
		return nil, err
	}
	return c, nil
}

func (g *groups) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, closed()
	}
	tag := rand.Text()
	p, err := os.StartProcess(path, s.Argv, &os.ProcAttr{
		Dir:   s.Dir,
		Env:   withTag(s.Env, tag),
		Files: []*os.File{pipes.in, pipes.out, pipes.out},
		Sys:   apart(),
	})
	if err != nil {
		return nil, refused(s, err)
	}
	t, err := newTree(p, tag)
	if err != nil { // without its tree it could not be stopped
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, &muster.Error{Code: muster.Unavailable, Message: "cannot watch over " + s.Argv[0] + ": " + err.Error(), Err: err}
	}
	c := newChild()
	c.pid, c.stop = p.Pid, t.kill
	pipes.begin(s)
	release := c.follow(ctx)
	g.running[c] = true
	go func() {
		state, err := t.wait(p)
		output := pipes.finish()
		release()
		g.mu.Lock()
		delete(g.running, c)
		g.mu.Unlock()
		if err != nil {
			c.end(-1, &muster.Error{Code: muster.Unavailable, Message: "the outcome of " + s.Argv[0] + " is unknown: " + err.Error(), Err: err}, nil)
			return
		}
		c.end(status(state), nil, output)
	}()
	return c, nil
}

// Close kills everything and waits until it is dead.
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
