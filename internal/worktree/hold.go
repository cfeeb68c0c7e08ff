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
	changed  sync.Cond           // its lock guards the rest
	held     map[string]bool     // the trees in which muster works
	commands map[string][]string // by tree, what people call the commands that run there
}

// patience is how long muster waits for the commands in a lane before it refuses: those that were killed end soon.
const patience = 2 * time.Second

// wait waits until the use of a tree has changed or ctx ends. The caller has the lock, which is free meanwhile.
func (h *holds) wait(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		h.changed.L.Lock() // or the caller could miss it: it begins to wait with the lock
		defer h.changed.L.Unlock()
		h.changed.Broadcast()
	})
	defer stop()
	h.changed.Wait()
}

func (h *holds) release(remove func()) func() {
	return sync.OnceFunc(func() {
		h.changed.L.Lock()
		defer h.changed.L.Unlock()
		remove()
		h.changed.Broadcast()
	})
}

// BeginCommand notes that a command runs in the working tree of a lane or a scratch checkout, until end is called. It
// waits while muster works there. what is what people call the command.
func (l *Lanes) BeginCommand(ctx context.Context, tree, what string) (end func(), err error) {
	h := l.holds
	h.changed.L.Lock()
	defer h.changed.L.Unlock()
	for h.held[tree] {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h.wait(ctx)
	}
	h.commands[tree] = append(h.commands[tree], what)
	l.nothingLeft.Delete(tree)
	return h.release(func() {
		i := slices.Index(h.commands[tree], what)
		h.commands[tree] = slices.Delete(h.commands[tree], i, i+1)
	}), nil
}

// hold keeps commands out of a working tree until release is called. The error is Held, with their names, where some
// run and do not end at once. It waits for another hold as long as that takes.
func (l *Lanes) hold(ctx context.Context, tree string) (release func(), err error) {
	h := l.holds
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.changed.L.Lock()
	defer h.changed.L.Unlock()
	for ctx.Err() == nil {
		names := slices.Sorted(slices.Values(h.commands[tree]))
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
