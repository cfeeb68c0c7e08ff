package teammate

import (
	"context"
	"errors"

	"muster"
	"muster/internal/requests"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/loop"
)

// Phases looks, at the end of each work phase, at what no member may change: the target and what is the user's.
type Phases interface {
	// Begin says that the member begins a phase.
	Begin(ctx context.Context, name muster.Name)
	// End says that the phase of the member is over, and tells whoever should know what has changed in it. moved says
	// how the member has moved the target, "" when it has not: then its task goes back to the board.
	End(ctx context.Context, name muster.Name, task muster.Task) (moved string)
}

// Member is a running member. The actions that Next decides work on it, and on its parts.
type Member struct {
	record   muster.Member // as it was in the roster when this life began
	limits   Limits
	ownModel bool // its model is not the team's
	run      func(context.Context) (muster.Run, error)
	model    llm.Model
	emit     func(loop.Event)
	talk     Talk
	phases   Phases
	requests *requests.Requests
	jobs     *code.Jobs
	todo     *agent.Todo
	diary    *diary

	phase        *phase
	presence     *presence
	conversation *conversation
	compaction   *compaction
	about        *surroundings
	claims       *claims
	hooks        *userHooks
	scratch      *scratchView
	toolbox      *toolbox
	lead         *lead
	team         *Overview

	// The course of the machine is of the goroutine of Live alone. All else is read from records and parts.
	stage     Stage
	start     StartFacts         // what was found when the transcript was opened
	err       error              // of the last phase
	byUser    bool               // the user stopped the last phase
	stopRest  context.CancelFunc // ends the watches of a rest
	rest      idleRest
	hookStops int  // how often in a row a hook has made an idle member go on
	end       *End // nil: the life goes on
}

// isLead reports whether the member is the lead. There is one in a team.
func (m *Member) isLead() bool { return m.record.Name == muster.Lead }

// End is how a member's life ended.
type End struct {
	Code int    // the lead's verdict on the run: 0 all done, 1 an error, 3 work is left
	Text string // the last message, or why it ended
}

// TurnCount returns how many turns the member has had in its life.
func (m *Member) TurnCount() int { return int(m.presence.turns.Load()) }

// Live runs the member until it shuts down, its context ends, or (the lead) the run is over. When the context ends with
// muster.CauseShutdown the member leaves in order; with any other cause its records stay as they are, for the process
// that takes it over.
func (m *Member) Live(ctx context.Context) (End, error) {
	defer m.jobs.Close()
	end, err := m.act(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if m.stage != Left && (errors.Is(err, muster.CauseShutdown) || err == nil && !m.isLead()) {
		m.jobs.Close() // no command of it may run when its record says that it has shut down
		return end, Leave{}.do(ctx, m)
	}
	return end, err
}

// act opens the conversation and does what Next decides, until the end. Facts are never kept from one action to the
// next: an action, or another process, may have changed any of them.
func (m *Member) act(ctx context.Context) (End, error) {
	if err := m.open(ctx); err != nil {
		return End{Code: 1}, err
	}
	defer m.stopRest()
	for m.end == nil {
		facts, err := m.facts(ctx)
		if err == nil {
			err = Next(facts).do(ctx, m)
		}
		if err != nil {
			return End{Code: 1}, err
		}
		if m.stage != Resting {
			m.stopRest()
		}
	}
	return *m.end, nil
}

// open opens the transcript and finds the member's claim. The transcript is the first: once this process is its writer,
// a former host can begin nothing more.
func (m *Member) open(ctx context.Context) (err error) {
	if err := m.conversation.open(ctx); err != nil {
		return err
	}
	if err := m.claims.find(ctx); err != nil {
		return err
	}
	if err := m.claims.own.find(ctx); err != nil {
		return err
	}
	if _, err := m.toolbox.alone.look(ctx); err != nil {
		return err
	}
	// After the claim was found: the lane of the current task has its occupant again, and is not taken for abandoned.
	m.claims.archiveAbandoned(ctx)
	mark, err := m.conversation.openingMark(ctx)
	m.start.Opened = m.conversation.hasRead(mark)
	if err == nil && m.isLead() && !isOpen(m.talk) {
		var run muster.Run
		run, err = m.run(ctx)
		m.start.Unneeded = run.Playbook != nil
	}
	return err
}
