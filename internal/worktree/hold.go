package worktree

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/text"
)

// holds say who uses the working trees of lanes and scratch checkouts in this process: commands, any number at once, or
// muster alone, which stages, merges, resets or archives what is there. Nothing that a command exchanges meanwhile can
// mislead it then.
type holds struct {
	sync.Mutex
	trees map[string]*use
}

// use is who uses a working tree. changed is closed when that has changed.
type use struct {
	commands map[int]string // what runs, by a number
	next     int
	isHeld   bool
	changed  chan struct{}
}

// patience is how long muster waits for the commands in a lane before it refuses: those that were killed end soon.
const patience = 2 * time.Second

// of returns the use of a working tree. The caller has the lock.
func (h *holds) of(tree string) *use {
	if h.trees == nil {
		h.trees = map[string]*use{}
	}
	u := h.trees[tree]
	if u == nil {
		u = &use{commands: map[int]string{}, changed: make(chan struct{})}
		h.trees[tree] = u
	}
	return u
}

// change tells those who wait that the use of a tree has changed. The caller has the lock.
func (h *holds) change(tree string, u *use) {
	close(u.changed)
	u.changed = make(chan struct{})
	if !u.isHeld && len(u.commands) == 0 {
		delete(h.trees, tree)
	}
}

// BeginCommand notes that a command runs in the working tree of a lane or a scratch checkout, until end is called. It
// waits while muster works there. what is what people call the command.
func (l *Lanes) BeginCommand(ctx context.Context, tree, what string) (end func(), err error) {
	h := l.holds
	h.Lock()
	defer h.Unlock()
	u := h.of(tree)
	for u.isHeld {
		if err := h.wait(ctx, u); err != nil {
			return nil, err
		}
		u = h.of(tree)
	}
	n := u.next
	u.next++
	u.commands[n] = what
	return sync.OnceFunc(func() {
		h.Lock()
		defer h.Unlock()
		delete(u.commands, n)
		h.change(tree, u)
	}), nil
}

// wait waits until the use has changed. The caller has the lock, which is free meanwhile.
func (h *holds) wait(ctx context.Context, u *use) error {
	changed := u.changed
	h.Unlock()
	defer h.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold keeps commands out of a working tree until release is called. The error is Held, with their names, where some
// run and do not end at once.
func (l *lifecycle) hold(ctx context.Context, tree string) (release func(), err error) {
	h := l.holds
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.Lock()
	defer h.Unlock()
	u := h.of(tree)
	for u.isHeld || len(u.commands) > 0 {
		waiting := ctx // for muster itself as long as it takes
		if !u.isHeld {
			waiting = limited
		}
		err := h.wait(waiting, u)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if u = h.of(tree); err != nil && !u.isHeld && len(u.commands) > 0 {
			names := slices.Sorted(maps.Values(u.commands))
			return nil, muster.Errorf(muster.Held, "commands run in %s: %s", filepath.Base(tree),
				text.List(names, maxRefused)).WithHint("wait for them or stop them, and try again")
		}
	}
	u.isHeld = true
	return sync.OnceFunc(func() {
		h.Lock()
		defer h.Unlock()
		u.isHeld = false
		h.change(tree, u)
	}), nil
}
