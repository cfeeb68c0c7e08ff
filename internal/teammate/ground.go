package teammate

import (
	"context"

	"muster"
	"muster/internal/landing"
	"muster/internal/tool/teamtools"
	"muster/internal/worktree"
)

// Lanes are where members work: worktree.Lanes, whose methods say what each does. Tests of whole teams in simulated time
// have some without git.
type Lanes interface {
	teamtools.Lanes
	Workdir(ctx context.Context, name muster.Name) (dir string, err error)
	Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error)
	Changed(ctx context.Context, name muster.Name) (bool, error)
	Ignored(ctx context.Context, name muster.Name) ([]string, error)
	Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error
	Release(ctx context.Context, name muster.Name) error
	Archive(ctx context.Context, name muster.Name) (ref string, err error)
	Finish(ctx context.Context, t muster.Task) (ref string, err error)
	Recover(ctx context.Context) error
}

// Lander takes a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	Land(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.BaseVerdict, error)
}
