// Package teammate runs one member of a team, the lead or a teammate, from its start to its
// end.
//
// A member is a state machine. Facts are what the records and the member's own process say
// now; Next is a pure function that decides from them what the member does; the Member
// performs that Action and gathers facts again. The lead and a teammate are the same machine
// with other facts. The loop is in runner.go, the facts are in facts.go, and all decisions
// about the course of a life are in next.go.
//
// One action, RunPhase, runs the model: an Engine works on the member's session until the
// model calls no more tools. Between two rounds of tools lies the boundary, where mail,
// finished background jobs and reminders enter and where limits act. What happens there is
// decided in boundary.go, and done in session.go.
//
// The invariants:
//   - A record is written before its effect is visible: a mail is in the transcript before it leaves the inbox, a claim
//     is on the board before its lane exists. Another process can go on at any point.
//   - A member says that it works before it takes anything from its inbox, so that the team never looks finished while
//     something is under way.
//   - Only the host in the roster's record writes a member's status and its transcript.
//   - A member has at most one claim. The board says whether it still holds; what the member keeps is the claim's key.
//
// The parts of a member have a type each: presence (its record in the roster), conversation
// (transcript and mail), claims (the claimed task), laneKeeper (the task's lane), plans,
// shutdown, phase (counters of a work phase), leadWait (the lead's sleep), workdir (where
// tools run). TeamProgress, which says whether the team can go on, and the Queue, which hands
// out ready tasks to idle members, belong to the team as a whole.
//
// How tasks change, how work lands and how mail is stored is not decided here: see packages
// board, landing and mailbox.
package teammate

import (
	"context"
	"errors"
	"time"

	"muster"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/loop"
)

// Limits are the settings of a member's life.
type Limits struct {
	Turns             int           // in a phase, 50
	IdleTimeout       time.Duration // 60 s; 0: never
	MaxTokens         int           // in a reply, 8000
	BashTimeout       time.Duration // 120 s
	BackgroundTimeout time.Duration // 300 s
	SubagentTurns     int           // 30
}

// Config is what New makes a Member of.
type Config struct {
	Services
	Limits
	// Record is the member as it is in the roster.
	Record muster.Member
	// Model returns the member's model, which reports its waits to onWait.
	Model func(onWait func(until time.Time, why error)) (llm.Model, error)
	// Extra are the tools of an embedder.
	Extra []llm.Tool
	// Emit shows what happens in a turn; it must not block.
	Emit func(loop.Event)
}

// Member is a running member. It performs the actions that Next decides; its parts do the
// work.
type Member struct {
	*self
	emit   func(loop.Event)
	engine Engine
	jobs   *code.Jobs
	todo   *agent.Todo

	presence     *presence
	conversation *conversation
	claims       *claims
	phase        *phase
	shutdown     *shutdown
	toolbox      *toolbox
	session      *session
	idle         *idling   // of a teammate
	turn         *leadTurn // of the lead

	// state is the course of the machine, of the goroutine of Live alone.
	state
}

// self is what the parts of a member share and never change: the services, and the record
// with which this life began.
type self struct {
	Services
	record muster.Member
}

// name returns the member's name, which is unique in the team.
func (s *self) name() muster.Name { return s.record.Name }

// isLead reports whether the member is the lead. There is one in a team.
func (s *self) isLead() bool { return s.record.Name == muster.Lead }

// agentID is the member's stable id, name@team.
func (s *self) agentID() string { return string(s.name()) + "@" + string(s.Team) }

// End is how a member's life ended.
type End struct {
	// Code is the lead's verdict on the run: 0 all done, 1 an error, 3 work is left.
	Code int
	// Text is the last message, or why it ended.
	Text string
}

// New makes a member of its record. Live starts it.
func New(c Config) (*Member, error) {
	s := &self{Services: c.Services, record: c.Record}
	m := &Member{self: s, emit: c.Emit, jobs: code.NewJobs(c.Launcher), todo: agent.NewTodo(),
		presence: newPresence(s), phase: &phase{}, shutdown: &shutdown{self: s}}
	if m.emit == nil {
		m.emit = func(loop.Event) {}
	}
	model, err := c.Model(m.presence.onModelWait)
	if err != nil {
		return nil, err
	}
	m.engine = Loop{Model: model}
	m.conversation = &conversation{self: s, presence: m.presence, jobs: m.jobs, returned: map[muster.RequestID]bool{}}
	m.claims = &claims{self: s, presence: m.presence, conversation: m.conversation, phase: m.phase, jobs: m.jobs,
		lanes: laneKeeper{s}}
	wait := &leadWait{self: s, presence: m.presence, conversation: m.conversation, claims: m.claims, phase: m.phase,
		toldUnclaimable: map[muster.MessageID]bool{}, toldRequest: map[muster.RequestID]time.Time{}}
	m.turn = &leadTurn{self: s, presence: m.presence, conversation: m.conversation, phase: m.phase, wait: wait}
	plans := &plans{self: s, presence: m.presence, conversation: m.conversation, claims: m.claims}
	m.toolbox = &toolbox{self: s, limits: c.Limits, extra: c.Extra, model: model, jobs: m.jobs, todo: m.todo,
		caller: caller{m.presence, m.conversation, m.claims, m.phase, plans, m.shutdown, wait, s}}
	m.session = &session{self: s, limits: c.Limits, toolbox: m.toolbox, presence: m.presence,
		conversation: m.conversation, claims: m.claims, phase: m.phase, shutdown: m.shutdown, lead: wait, jobs: m.jobs,
		todo: m.todo, emit: m.emit, pendingCalls: map[string]bool{}}
	m.toolbox.session = m.session // the two know each other: the toolbox audits through the session
	m.idle = &idling{self: s, limits: c.Limits, presence: m.presence, conversation: m.conversation, claims: m.claims,
		phase: m.phase, jobs: m.jobs, shutdown: m.shutdown, toolbox: m.toolbox}
	return m, nil
}

// Name returns the member's name.
func (m *Member) Name() muster.Name { return m.name() }

// TurnCount returns how many turns the member has had in its life.
func (m *Member) TurnCount() int { return m.presence.turnCount() }

// Live runs the member until it shuts down, its context ends, or (the lead) the run is over.
// When the context ends with muster.CauseShutdown the member leaves in order; with any other
// cause its records stay as they are, for the process that takes it over.
func (m *Member) Live(ctx context.Context) (End, error) {
	defer m.jobs.Close()
	defer func() { _ = m.engine.Close() }() // what it could not end dies with this process
	end, err := m.run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if m.stage != Left && (errors.Is(err, muster.CauseShutdown) || err == nil && !m.isLead()) {
		m.jobs.Close() // no command of it may run when the task goes to the next owner
		last, cancel := lastWrites(ctx)
		defer cancel()
		return end, m.leave(last)
	}
	return end, err
}

// lastWrites returns a context for the last writes of a life: it goes on for 5 s after ctx
// was cancelled.
func lastWrites(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}
