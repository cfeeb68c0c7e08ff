// Package teammate is one member's life: WORK, IDLE, WORK, ... SHUTDOWN.
//
// A Member owns its conversation and runs an Engine on it. In WORK the engine asks the model and runs tools; between two
// rounds, at the Boundary, mail, finished background jobs and reminders enter, and limits end the phase. In IDLE nothing
// runs and nothing is asked: a teammate waits for mail and for its turn at the board (rest.go), the lead sleeps until
// something needs it (lead.go). Whatever a member decides is a record before it acts, so that another process can go on
// with its conversation at the exact turn.
//
// Read in this order: member.go (the life), begin.go and leftovers.go (how it goes on after a crash), session.go (the
// conversation and the boundary), mail.go (what enters there), phase.go and mend.go (limits, and what follows an error),
// rest.go and timeout.go (a teammate between phases), lead.go, needed.go and outlook.go (the lead's sleep), hand.go and
// lane.go (the task in hand), stand.go and tools.go (where and how its tools run), requests.go (plans and shutdown),
// record.go (what the roster shows), queue.go (the idle ones' turn at the board).
package teammate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// Rooms are the planes of one team that its members share.
type Rooms struct {
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
	Run      func(context.Context) (muster.Run, error)
	// Patient: idle members are never timed out.
	Patient bool
	// Talk is the user's conversation with the lead; nil: there is none, and the run ends by itself.
	Talk Talk
	// Log is told what went wrong and stopped nobody. nil: nothing is logged.
	Log *slog.Logger
	// Spawned is told each spawn, so that a supervisor looks at once.
	Spawned func()
}

// Limits are the settings of a member's life.
type Limits struct {
	Turns             int           // a phase, 50
	IdleTimeout       time.Duration // 60 s; 0: never
	MaxTokens         int           // a reply, 8000
	BashTimeout       time.Duration // 120 s
	BackgroundTimeout time.Duration // 300 s
	SubagentTurns     int           // 30
}

// Config makes a Member.
type Config struct {
	Rooms
	Limits
	Record muster.Member
	// Model returns the member's model; waits are told to onWait.
	Model func(onWait func(until time.Time, why error)) (llm.Model, error)
	// Extra tools of an embedder.
	Extra []llm.Tool
	// Emit shows what happens in a turn; it must not block.
	Emit func(loop.Event)
}

// Member is a living member.
type Member struct {
	Config
	engine Engine
	model  llm.Model
	script *transcript.Transcript
	jobs   *code.Jobs
	todo   *agent.Todo

	mu      sync.Mutex
	record  muster.Member
	hand    *muster.Task
	known   int // the fence of the claim that a tool call told it of
	phase   phase
	made    *profile             // nil while it is idle
	asked   map[muster.Name]bool // whom it asked something that is not answered yet
	scratch string               // its scratch checkout, once made
	at      string               // the commit that it stands at
	leaving bool                 // it granted its shutdown
	waiting bool                 // the roster says that it is parked for its model
	inbox   muster.Pos
	turns   int // of its life, for people
	// landed is the claim whose landing was gone on with at rest; of the member's own goroutine alone.
	landed muster.MessageID
	// ignored is the claim of which it was told that its lane has ignored files only; of the member's own goroutine alone.
	ignored muster.MessageID
	// answered are the plans whose answer submit_plan has returned.
	answered map[muster.RequestID]bool
	// unsaid are calls that the end of this process cut off and that records answer when the member goes on.
	unsaid map[string]bool
	sleeper
}

// End is how a member's life ended.
type End struct {
	// Code is the lead's verdict on the run: 0 all done, 1 an error, 3 work is left.
	Code int
	// Text is the last words, or why it ended.
	Text string
}

// New makes a member of its record. Live starts it.
func New(c Config) (*Member, error) {
	m := &Member{Config: c, record: c.Record, asked: askedOf(c.Record), answered: map[muster.RequestID]bool{},
		unsaid: map[string]bool{}, sleeper: newSleeper(), turns: c.Record.Turns}
	if m.Config.Emit == nil {
		m.Config.Emit = func(loop.Event) {}
	}
	model, err := c.Model(m.parked)
	if err != nil {
		return nil, err
	}
	m.jobs = code.NewJobs(c.Launcher)
	m.todo = agent.NewTodo()
	m.model, m.engine = model, Loop{Model: model}
	return m, nil
}

// TurnCount is how many turns the member has had in its life.
func (m *Member) TurnCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns
}

func (m *Member) lead() bool { return m.Record.Name == muster.Lead }

func (m *Member) name() muster.Name { return m.Record.Name }

// agentID is the member's stable id, name@team.
func (m *Member) agentID() string { return string(m.name()) + "@" + string(m.Team) }

// Me is the member's record as it was when it was read last.
func (m *Member) Me() muster.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record
}

// Live runs the member until it shuts down, its context ends, or (the lead) the run is over. When the context ends with
// muster.CauseShutdown the member leaves in order; with any other cause its records stay as they are, for whoever takes
// it over.
func (m *Member) Live(ctx context.Context) (End, error) {
	defer m.jobs.Close()
	defer m.engine.Close()
	end, err := m.live(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	switch {
	case errors.Is(err, muster.CauseShutdown), err == nil && !m.lead():
		m.jobs.Close() // nothing of it is alive when its task goes back
		lastly, cancel := finally(ctx)
		defer cancel()
		return end, m.shutDown(lastly)
	}
	return end, err
}

func (m *Member) live(ctx context.Context) (End, error) {
	work, err := m.begin(ctx)
	if err != nil {
		return End{Code: 1}, err
	}
	for {
		if work {
			if end, over, err := m.work(ctx); err != nil || over {
				return end, err
			}
		}
		rest := m.rest
		if m.lead() {
			rest = m.restLead
		}
		end, again, err := rest(ctx)
		if err != nil || !again {
			return end, err
		}
		work = true
	}
}

// work runs one WORK phase. over says that the member's life ends with it.
func (m *Member) work(ctx context.Context) (end End, over bool, err error) {
	m.mu.Lock()
	m.phase = phase{started: time.Now()}
	m.mu.Unlock()
	if err := m.status(ctx, muster.Working, "", ""); err != nil {
		return End{Code: 1}, true, err
	}
	for {
		turn, done := m.turn(ctx)
		err := m.engine.Work(turn, m, m.profile().tools)
		cause := context.Cause(turn)
		done()
		if err == nil || context.Cause(ctx) != nil {
			break
		}
		if errors.Is(cause, muster.CauseTurn) {
			return End{}, false, m.stopped(ctx)
		}
		if m.limited(ctx, err) {
			break
		}
		again, end, err := m.mend(ctx, err)
		if again && err == nil {
			continue
		}
		return end, err != nil || end != (End{}), err
	}
	if cause := context.Cause(ctx); cause != nil {
		return End{}, true, cause
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return End{Text: "shut down as asked"}, m.leaving, nil
}

// shutDown is the orderly end: the task in hand goes back, its lane is kept.
func (m *Member) shutDown(ctx context.Context) error {
	if err := m.letGo(ctx, board.Release{Reason: "shutdown of its owner", By: m.name()}); err != nil {
		return err
	}
	if err := m.Requests.Leave(ctx, m.name(), "it has shut down"); err != nil {
		return err
	}
	if m.script != nil {
		if err := m.script.Mark(ctx, fmt.Sprintf("left-%d", m.Me().Epoch)); err != nil {
			return err
		}
	}
	_, err := m.Roster.Update(ctx, m.name(), func(r *muster.Member) {
		if r.Host != m.Record.Host {
			return // somebody else's by now
		}
		r.Status, r.Doing, r.Task, r.Host, r.Turns = muster.Shutdown, "", 0, "", m.turns
		setAsked(r, nil)
		if r.IdleReason != muster.IdleTimeout {
			r.IdleReason = ""
		}
	})
	return err
}

// finally is a context for last writes: it goes on for 5 s without the cancel.
func finally(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}
