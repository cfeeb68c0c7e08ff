package worktree

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/text"
)

// holds say who uses the working trees of lanes and scratch checkouts in this process: commands, any number at once, or
// muster alone, which commits, merges, resets or archives what is there. Nothing that a command exchanges meanwhile can
// mislead it then. Looks need no hold: they are confined, and stage in a copy of the index.
type holds struct {
	sync.Mutex
	held     map[string]bool   // the trees in which muster works
	commands map[*command]bool // those that run
	changed  chan struct{}     // closed at the next change; nil: no caller waits for it
}

// command is a command that runs in a working tree. what is what people call it.
type command struct{ tree, what string }

// patience is how long muster waits for the commands in a lane before it refuses: those that were killed end soon.
const patience = 2 * time.Second

// wait waits until the use of a tree has changed or ctx ends. The caller has the lock, which is free meanwhile.
func (h *holds) wait(ctx context.Context) {
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	changed := h.changed
	h.Unlock()
	defer h.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// release returns the function that ends a use by remove.
func (h *holds) release(remove func()) func() {
	return sync.OnceFunc(func() {
		h.Lock()
		defer h.Unlock()
		remove()
		if h.changed != nil {
			close(h.changed)
			h.changed = nil
		}
	})
}

// commandsIn returns the names of the commands that run in a tree, sorted.
func (h *holds) commandsIn(tree string) (names []string) {
	for c := range h.commands {
		if c.tree == tree {
			names = append(names, c.what)
		}
	}
	slices.Sort(names)
	return names
}

// BeginCommand notes that a command runs in the working tree of a lane or a scratch checkout, until end is called. It
// waits while muster works there. what is what people call the command.
func (l *Lanes) BeginCommand(ctx context.Context, tree, what string) (end func(), err error) {
	h := l.holds
	h.Lock()
	defer h.Unlock()
	for h.held[tree] {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h.wait(ctx)
	}
	c := &command{tree, what}
	h.commands[c] = true
	return h.release(func() { delete(h.commands, c) }), nil
}

// hold keeps commands out of a working tree until release is called. The error is Held, with their names, where some
// run and do not end at once. It waits for another hold as long as that takes.
func (l *lifecycle) hold(ctx context.Context, tree string) (release func(), err error) {
	h := l.holds
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.Lock()
	defer h.Unlock()
	for ctx.Err() == nil {
		names := h.commandsIn(tree)
		switch {
		case h.held[tree]:
			h.wait(ctx)
		case len(names) == 0:
			h.held[tree] = true
			return h.release(func() { delete(h.held, tree) }), nil
		case limited.Err() == nil:
			h.wait(limited)
		case ctx.Err() == nil:
			return nil, muster.Errorf(muster.Held, "commands run in %s: %s", filepath.Base(tree),
				text.List(names, maxRefused)).WithHint("wait for them or stop them, and try again")
		}
	}
	return nil, context.Cause(ctx)
}
