package teammate

import (
	"context"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/tool/teamtools"
	"muster/internal/worktree"
	"muster/llm"
)

// Limits are the settings of a member's life.
type Limits struct {
	Turns             int           // in a phase; 0: 200, and fewer in a standstill
	IdleTimeout       time.Duration // 60 s; 0: never
	MaxTokens         int           // in a reply; 0 is the adapter's default
	BashTimeout       time.Duration // 120 s
	BackgroundTimeout time.Duration // 300 s
	SubagentTurns     int           // 30; of a reviewer too
	TodoLimit         int           // items of the member's own list; 0: 20
	TodoReminder      int           // rounds without a call of todo until a reminder; 0: 10, below zero: none
	KeptResults       int           // 3: results that stay whole when older ones are cleared
}

// Subagent is the model of a kind of subagents, and what is known of it, as Config has it of the member's.
type Subagent struct {
	Model     llm.Model
	Name      string
	NoImages  bool
	MaxTokens int
}

// Lanes are the worktrees in which members work: worktree.Lanes, whose methods say what each does.
type Lanes interface {
	teamtools.Lanes
	Workdir(ctx context.Context, name muster.Name) (dir string, err error)
	Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error)
	ScratchChanges(ctx context.Context, member muster.Name, tips []string) (files []string, err error)
	Unlanded(ctx context.Context, tips []string, archived []worktree.Archived) ([]worktree.Leftover, error)
	Changed(ctx context.Context, name muster.Name) (bool, error)
	Fingerprint(ctx context.Context, name muster.Name) (string, error)
	Ignored(ctx context.Context, name muster.Name) ([]string, error)
	Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error
	Release(ctx context.Context, name muster.Name) error
	Archive(ctx context.Context, name muster.Name) (ref string, err error)
	ArchiveCompleted(ctx context.Context, t muster.Task) (ref string, err error)
	Recover(ctx context.Context) error
}

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	LandWith(
		ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, owner landing.Owner,
	) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// Talk is a conversation of the user with the lead. While it is open the run does not end by itself: the lead listens.
type Talk interface {
	// Closed returns a channel that is closed when the user says no more; the run then ends like any other.
	Closed() <-chan struct{}
	// Turn is called when the lead's turn begins. Its context ends with muster.CauseTurn when the user stops the turn.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is called for each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest gives the prompt to the user after the lead's turn. done says that nothing is open and nobody is at work.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead in another one.
const TalkLease = "talk"

func isOpen(t Talk) bool {
	if t == nil {
		return false
	}
	select {
	case <-t.Closed():
		return false
	default:
		return true
	}
}
