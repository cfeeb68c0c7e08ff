package team

import (
	"context"

	"muster/internal/proc"
)

// OpenOn opens a team on other ground than a git repository.
func OpenOn(ctx context.Context, c Config, g ground) (*Team, error) { return open(ctx, c, g) }

// Launch replaces what starts tools and checks: the guard is a process of its own and cannot be part of a test's bubble.
func (t *Team) Launch(f func(context.Context) (proc.Launcher, error)) { t.launch = f }
