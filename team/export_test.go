package team

import (
	"context"

	"muster/internal/proc"
	"muster/internal/workspace"
)

// OpenOn opens a team on other ground than a git repository.
func OpenOn(ctx context.Context, c Config, g repository) (*Team, error) {
	w, err := workspace.OpenRoot(g.Root(), workspace.Options{Store: c.Store, Name: c.Name})
	if err != nil {
		return nil, err
	}
	t, err := OpenIn(w, c)
	if err == nil {
		t.repository = g
	}
	return t, err
}

// Launch replaces what starts tools and checks: the guard is a process of its own and cannot be part of a test's bubble.
func (t *Team) Launch(f func(context.Context) (proc.Launcher, error)) { t.launch = f }

// Publish gives an event to the subscribers.
func (t *Team) Publish(e Event) { t.publish(e) }
