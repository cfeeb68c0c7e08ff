package teammate

import (
	"context"
	"errors"
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
	ArchiveCompleted(ctx context.Context, t muster.Task) (ref string, err error)
	Recover(ctx context.Context) error
}

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	Land(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// Talk is a conversation of the user with the lead, as the lead sees it. While it is open the
// run does not end by itself: where it would, the lead listens.
type Talk interface {
	// Closed returns a channel that is closed when the user says no more; the run then ends
	// like any other.
	Closed() <-chan struct{}
	// Turn is called when the lead's turn begins. Its context ends with muster.CauseTurn when
	// the user stops the turn.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is called for each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest is called when the lead's turn is over and the prompt is the user's. done says
	// that nothing is open and nobody is at work.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead that lives in
// another one.
const TalkLease = "talk"

// hasConversation reports whether the user is in a conversation with the lead, here or in
// another process.
func (s *Services) hasConversation(ctx context.Context) bool {
	if s.inTalk() {
		return true
	}
	held, err := s.Store.Leases().Held(ctx, TalkLease)
	return err == nil && held
}

// inTalk reports whether a conversation is open in this process.
func (s *Services) inTalk() bool {
	if s.Talk == nil {
		return false
	}
	select {
	case <-s.Talk.Closed():
		return false
	default:
		return true
	}
}

// logger returns the log of this member. It says nothing where the team has none.
func (s *self) logger() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log.With("member", s.name())
}

// logDropped logs an error that does not stop the member: what failed is for people only, or
// is done again later. An error that only says that the member was cancelled is not worth a
// line.
func (s *self) logDropped(ctx context.Context, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	s.logger().WarnContext(ctx, "error dropped", "what", what, "err", err)
}
