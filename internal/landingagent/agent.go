// Package landingagent runs the agents that the runtime asks about a landing: the reviewer, who approves work before it
// lands or returns it, and the arbiter, who brings work together that keeps coming back because of others' work.
//
// An Agent is a model with a role, tools and a number of turns. It runs in the goroutine of the landing, with a
// conversation in memory that ends with it: what has to outlive the process is written by package landing. Review and
// Arbitrate say what each of them is told, and what counts as its answer.
//
// The package keeps these invariants:
//
//   - An agent ends: after its turns, with the context, or when its conversation is full.
//   - Only a call of the tool verdict approves work. No text of the model does, and none of the work.
//   - All that others have written stands between marks that it cannot close.
//
// When they are asked is decided in internal/landing, and which tools they have in internal/teammate.
package landingagent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/prompt"
	"muster/internal/roles"
	"muster/llm"
	"muster/loop"
)

// The limits of an agent and of what it is told.
const (
	defaultTurns = 30
	parallel     = 8        // read-only calls of one reply that run side by side
	maxReminders = 3        // for one that stops without its answer
	maxDiff      = 24 << 10 // bytes of a difference in the first message; all of it is in a file
	maxOtherDiff = 8 << 10  // of each other task's
	maxText      = 8 << 10  // of a description or a summary
)

// Agent is what an agent is made of.
type Agent struct {
	Team muster.Name
	Role string // its name
	// File is the role with the name; the zero Role has no prompt.
	File      roles.Role
	Model     llm.Model
	ModelName string // as the settings name it
	MaxTokens int    // of a reply; 0 for the adapter's default
	Tools     []llm.Tool
	Turns     int // how often the model is asked; 0 for 30
	// Check is the command of the run's check, "" for none.
	Check string
	// KeepDiff writes a difference to a file that the agent can read.
	KeepDiff func(text string) (path string, err error)
	// OnReply gets every reply.
	OnReply func(context.Context, llm.Reply)
}

// errTurns is the error of an agent that has used its turns.
var errTurns = errors.New("it has used all its turns")

// conversation is one run of an agent. It is never made shorter: an agent that has filled its window has read more than
// its answer needs, and a reviewer that has lost the work from sight must not decide about it.
type conversation struct {
	Agent
	purpose string
	system  []string
	// isDone reports whether the answer is there; nil: the agent answers by its end. remind is said to one that ends
	// before.
	isDone func() bool
	remind string
}

// run runs an agent to its end, and returns its last words.
func (c conversation) run(ctx context.Context, message string) (last string, err error) {
	if c.Turns <= 0 {
		c.Turns = defaultTurns
	}
	// The key tells a provider's cache, and a script, which agent speaks: by its role, whoever's work it is about.
	key := fmt.Sprintf("%s@%s", muster.RoleKey(c.Role), c.Team)
	prefix := llm.Request{System: c.system, MaxTokens: c.MaxTokens, CacheKey: key,
		CacheGroup: string(c.Team) + "/" + c.purpose, Purpose: c.purpose}
	for _, t := range c.Tools {
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	talk := loop.NewMemory(prefix)
	talk.Say(llm.Text{Text: message})
	reminders := 0
	boundary := func(_ context.Context, b loop.Boundary) (bool, error) {
		switch {
		case c.isDone != nil && c.isDone():
			return false, nil
		case b == loop.BetweenRounds:
			return true, nil
		case c.isDone == nil || reminders == maxReminders:
			return false, nil
		}
		reminders++
		talk.Say(llm.Text{Text: prompt.Reminder("%s", c.remind)})
		return true, nil
	}
	reply, err := loop.Agent{Model: c.Model, Tools: c.Tools, Conversation: talk, Parallel: parallel, MaxTurns: c.Turns,
		Boundary: boundary,
		Emit: func(e loop.Event) {
			if e, ok := e.(loop.TurnEnded); ok && c.OnReply != nil {
				c.OnReply(ctx, e.Reply)
			}
		}}.Run(ctx)
	switch {
	case c.isDone != nil && c.isDone() && ctx.Err() == nil:
		err = nil // whatever came after the answer
	case errors.Is(err, loop.ErrMaxTurns):
		err = fmt.Errorf("%w (%d)", errTurns, c.Turns)
	case llm.KindOf(err) == llm.ContextFull:
		err = errors.New("its conversation has grown too long")
	}
	return strings.TrimSpace(reply.Message.Text()), err
}
