// Package landingagent runs the agent that the runtime asks about a landing: the reviewer, who approves work before it
// lands or returns it.
//
// An Agent is a model with a role, tools and a number of turns. It runs in the goroutine of the landing, with a
// conversation in memory that ends with it: what has to outlive the process is written by package landing. Review says
// what it is told, and what counts as its answer.
//
// The package keeps these invariants:
//
//   - An agent ends: after its turns, with the context, or when its conversation is full.
//   - Only a call of the tool verdict approves work. No text of the model does, and none of the work.
//   - All that others have written stands between marks that it cannot close.
//
// When it is asked is decided in internal/landing, and which tools it has in internal/teammate.
package landingagent

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// Surroundings are the first texts of the conversation: the project's instructions, and the working directory.
	Surroundings []string
	// KeepDiff writes a difference to a file that the agent can read.
	KeepDiff func(text string) (path string, err error)
}

// errTurns is the error of an agent that has used its turns.
var errTurns = errors.New("it has used all its turns")

// reminder is said to a reviewer that ends without its answer.
const reminder = "Only a call of verdict decides. Call verdict now, or after you have read what you still need."

// converse runs the agent until the verdict is there, or to its end. The conversation is never made shorter: an agent
// that has filled its window has read more than its answer needs, and a reviewer that has lost the work from sight must
// not decide about it.
func (a Agent) converse(ctx context.Context, d *decision, message string) error {
	turns, tools := a.Turns, append(slices.Clone(a.Tools), d.tool())
	if turns <= 0 {
		turns = defaultTurns
	}
	// The key tells a provider's cache, and a script, which agent speaks: by its role, whoever's work it is about.
	prefix := llm.Request{System: prompt.Reviewer(a.Role, a.Team, a.File.Render()), MaxTokens: a.MaxTokens,
		CacheKey:   fmt.Sprintf("%s@%s", muster.RoleKey(a.Role), a.Team),
		CacheGroup: string(a.Team) + "/review", Purpose: "review"}
	for _, t := range tools {
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	talk := loop.NewMemory(prefix)
	for _, text := range append(slices.Clone(a.Surroundings), message) {
		talk.Say(llm.Text{Text: text})
	}
	reminders := 0
	boundary := func(_ context.Context, b loop.Boundary) (bool, error) {
		switch {
		case d.verdict != nil:
			return false, nil
		case b == loop.BetweenRounds:
			return true, nil
		case reminders == maxReminders:
			return false, nil
		}
		reminders++
		talk.Say(llm.Text{Text: prompt.Reminder("%s", reminder)})
		return true, nil
	}
	_, err := loop.Agent{Model: a.Model, Tools: tools, Conversation: talk, Parallel: parallel, MaxTurns: turns,
		Boundary: boundary}.Run(ctx)
	switch {
	case d.verdict != nil && ctx.Err() == nil:
		return nil // whatever came after the answer
	case errors.Is(err, loop.ErrMaxTurns):
		return fmt.Errorf("%w (%d)", errTurns, turns)
	case llm.KindOf(err) == llm.ContextFull:
		return errors.New("its conversation has grown too long")
	}
	return err
}
