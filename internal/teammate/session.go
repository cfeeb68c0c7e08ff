package teammate

import (
	"context"
	"slices"
	"time"

	"muster/internal/failpoint"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// session is the member's conversation as the loop works on it: it brings in the mail, and
// keeps the limits.
type session struct{ *self }

// Request returns what to send now. System and tools stay the same byte for byte, and
// messages are only appended to, so that the model's provider can cache the prefix.
func (s session) Request(ctx context.Context) (llm.Request, error) {
	p := s.toolbox.get()
	var turn int
	s.phase.change(func(c *counters) {
		c.turns++
		c.lastTurnAt = time.Now()
		turn = c.turns
	})
	s.presence.event(ctx, journal.TurnStarted, map[string]any{"turn": turn, "turns": s.presence.turns.Add(1)})
	return llm.Request{System: p.system, Tools: p.specs, Messages: s.conversation.script.Messages(),
		MaxTokens: s.limits.MaxTokens, CacheKey: s.agentID()}, nil
}

// Append makes a finished reply durable, before any of its calls begins, and meters it.
func (s session) Append(ctx context.Context, r llm.Reply) error {
	if err := s.conversation.script.Reply(ctx, r); err != nil {
		return err
	}
	failpoint.Hit("teammate.replied")
	var now counters
	s.phase.change(func(c *counters) {
		c.countReply(r, s.todo.Owns)
		now = *c
	})
	// From here on a crash leaves calls without results. They are answered when the member
	// starts again; see answerCalls.
	s.presence.onModelReply(ctx)
	s.presence.event(ctx, journal.TurnEnded, usageFields(r, map[string]any{"turn": now.turns,
		"seconds": seconds(time.Since(now.lastTurnAt))}))
	if now.isEndless(s.limits.Turns) {
		return errTurns
	}
	return nil
}

// Answer makes the result of one call durable. A call that the end of the process cut off
// stays open if records answer it: the process that takes the conversation over asks them. An
// answer now would say "interrupted" of a call whose outcome is on record.
func (s session) Answer(ctx context.Context, r llm.Result) error {
	p := s.toolbox.get()
	isPending := false
	s.phase.change(func(c *counters) {
		if isPending = slices.Contains(c.pending, r.ID); !isPending {
			c.countResult(r, p.polls)
		}
	})
	if isPending {
		return nil
	}
	defer failpoint.Hit("teammate.answered")
	return s.conversation.script.Result(ctx, r)
}

// Boundary is where things from outside enter the conversation, and limits act.
func (s session) Boundary(ctx context.Context, b loop.Boundary) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	// A round of tools that has ended the phase is its last one: no mail is taken that nobody
	// would read before the next phase.
	if c := s.phase.snapshot(); c.leaves || c.over {
		return false, nil
	}
	deliver := s.conversation.deliver
	if b == loop.BeforeStop { // what wakes no idle model does not keep this one going either
		deliver = s.conversation.deliverWaking
	}
	received, err := deliver(ctx)
	if err != nil {
		return false, err
	}
	announced, err := s.conversation.announceJobs(ctx)
	if err != nil {
		return false, err
	}
	step := s.decideBoundary(b, received || announced)
	if step.reminder != "" {
		if err := s.conversation.say(ctx, nil, step.reminder); err != nil {
			return false, err
		}
	}
	return step.goOn, step.err
}

// decideBoundary decides from the phase's counters what follows at a boundary.
func (s session) decideBoundary(b loop.Boundary, received bool) (step boundaryStep) {
	task, _ := s.claims.CurrentTask()
	// A member that waits for something has not stopped, and a lead that was told that
	// nothing can move knows its task.
	waits := len(s.presence.openQuestions()) > 0 || s.jobs.Running() > 0 || s.lead.toldStuck
	usedTodo := false
	s.phase.change(func(c *counters) {
		if b == loop.BeforeStop {
			step = c.beforeStop(received, task.ID, waits)
			return
		}
		step = c.betweenRounds(s.limits.Turns)
		usedTodo, c.usedTodo = c.usedTodo, false
	})
	if b == loop.BeforeStop || step.reminder != "" || step.err != nil {
		return step
	}
	if text, due := s.todo.Round(usedTodo); due {
		step.reminder = prompt.Reminder("%s", text)
	}
	return step
}
