package teammate

import (
	"context"
	"log/slog"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/tool/teamtools"
	"muster/internal/worktree"
	"muster/journal"
)

// Services are what the members of one team share.
type Services struct {
	Team     muster.Name
	Home     paths.Dir
	Store    muster.Store
	Journal  *journal.Journal
	Board    *board.Board
	Post     *mailbox.Mail
	Roster   *roster.Roster
	Requests *requests.Requests
	Lanes    Lanes
	Lander   Lander
	Launcher proc.Launcher
	Queue    *Queue
	// Log gets what went wrong and stopped nobody. If it is nil nothing is logged.
	Log *slog.Logger
	// Run returns the record of the team's current run.
	Run func(context.Context) (muster.Run, error)
	// Patient says that idle members are never timed out.
	Patient bool
	// Talk is the user's conversation with the lead; without one it is nil, and the run ends
	// by itself.
	Talk Talk
	// Spawned is called after each spawn, so that a supervisor starts the new teammate at
	// once.
	Spawned func()
}

// Lanes are the worktrees in which members work: worktree.Lanes, whose methods say what each
// does. Tests have some without git.
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

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	Land(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.BaseVerdict, error)
}
