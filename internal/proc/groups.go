package proc

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"sync"

	"muster"
)

// groups is the launcher without a guard: each program is the leader of a process group.
type groups struct {
	mu      sync.Mutex
	closed  bool
	started []*child // those that are over leave it at the next start
}

// starter starts the programs of all launchers without a guard.
var starter thread

func (g *groups) Start(ctx context.Context, s Spec) (Process, error) {
	return startWith(ctx, s, g.start)
}

// start starts the program and follows it to its end. Under the lock, Close sees every program that has started.
func (g *groups) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed()
	}
	if s.Ruleset != nil { // invariant: nothing starts without the rules that it was to have
		return nil, muster.Errorf(muster.Unavailable, "commands cannot be confined by this launcher").
			WithHint("call team.Guard first thing in main")
	}
	tag := rand.Text()
	files := []*os.File{pipes.in, pipes.out, pipes.err}
	if s.Extra != nil {
		files = append(files, s.Extra)
	}
	var p *os.Process
	err := starter.do(func() (err error) {
		p, err = os.StartProcess(path, s.Argv, &os.ProcAttr{
			Dir:   s.Dir,
			Env:   WithVariables(s.Env, CallVar+"="+tag),
			Files: files,
			Sys:   NewSession(),
		})
		return err
	})
	if err != nil {
		return nil, startError(s, err)
	}
	// From here the program runs. If its tree cannot be watched it is killed at once: it could not be stopped later.
	t, err := newTree(p, tag)
	if err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, muster.Errorf(muster.Unavailable, "cannot watch over %s: %w", s.Argv[0], err)
	}
	c := follow(ctx, s, pipes, p.Pid, t.kill, func() (exit int, reached []string, err error) {
		state, err := t.wait(p)
		if err != nil {
			return -1, nil,
				muster.Errorf(muster.Unavailable, "the outcome of %s is unknown: %w", s.Argv[0], err)
		}
		return ExitStatus(state), nil, nil
	})
	g.started = append(slices.DeleteFunc(g.started, (*child).isOver), c)
	return c, nil
}

func (g *groups) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.started {
		_ = c.Kill()
	}
	for _, c := range g.started {
		_, _ = c.Wait()
	}
	return nil
}
