// Package loop runs one agent's turns: ask the model, run the tools that it calls, append the results, until it stops.
//
// An Agent is a model, tools and a Conversation; Run is the whole of it. What an agent is allowed, told or stopped by
// comes from around the loop: a Boundary lets mail, reminders and limits in, a Conversation decides what the model is
// sent and makes everything durable, a wrapper of a tool (package tool) audits or refuses it. A feature that seems to
// need a change here belongs into one of those. Memory is a Conversation in memory only. Events tell a user interface
// what happens. Package agent makes an agent with the standard tools in a directory.
//
// Read in this order: loop.go (Run), event.go, memory.go.
//
// These hold whatever happens:
//   - The loop keeps no state. After an error, or a crash, Run goes on from where the Conversation stands.
//   - A reply is appended before any of its calls runs, and each result as soon as it is there.
//   - Every call is answered exactly once, in the order of the calls, also when it was cancelled or has no tool.
//   - A reply is repaired (package repair) before it is appended. A call whose arguments are no object never runs.
//   - Calls that only read run side by side, at most Parallel of them; every other call runs alone.
//   - Nothing enters the conversation while calls are unanswered, or between a paused reply and its continuation.
//
// The fields of Agent, the methods of Conversation and the meaning of an Event stay compatible; events and optional
// fields may be added.
package loop

import (
	"context"
	"errors"
	"sync"

	"muster/llm"
	"muster/llm/repair"
)

// Conversation is the history, owned by the caller. Append and Answer are durable when they return. Messages that were
// handed out by Request are never changed, but the next Request may have others: see Replacer.
type Conversation interface {
	// Request is what to send now: the prefix, and the messages as compaction leaves them.
	Request(ctx context.Context) (llm.Request, error)
	// Append adds a finished reply. Being durable, it is also the record that its calls may have begun.
	Append(ctx context.Context, r llm.Reply) error
	// Answer adds the result of one call as soon as it is there: a crash in the third call keeps the first two.
	// The conversation puts the results into one message, in the order of the calls. Safe for concurrent use.
	Answer(ctx context.Context, r llm.Result) error
}

// Replacer is a Conversation whose history can be replaced by a shorter one. A wrapper that compacts does so in its
// Request, before it returns the request: the loop holds no messages from one turn to the next.
type Replacer interface {
	Conversation
	// Replace makes messages the whole history; it is durable when it returns. It is an error while calls are
	// unanswered.
	Replace(ctx context.Context, messages []llm.Message) error
}

// Boundary is where something from outside may enter the conversation.
type Boundary int

const (
	// BetweenRounds is after a round of tools, before the model is asked again.
	BetweenRounds Boundary = iota
	// BeforeStop is when the model has called no tool, before the run ends.
	BeforeStop
)

// ErrMaxTurns ends a run that has used its turns.
var ErrMaxTurns = errors.New("the agent has used all its turns")

// Agent is what the loop needs. Model and Conversation must be set.
type Agent struct {
	Model        llm.Model
	Conversation Conversation
	// Tools are given once and stay the same. What the model is told of them is the Conversation's, in its Request.
	Tools []llm.Tool
	// Boundary may append to the conversation (mail, results of background jobs, reminders) and says whether to go on.
	// Between two rounds false means that a tool has ended the work; before the stop true means that something came in.
	// Its error ends the run. Without a Boundary the agent goes on until it first stops.
	Boundary func(context.Context, Boundary) (bool, error)
	// Emit gets the events. It must not block, and is called from several goroutines.
	Emit func(Event)
	// Parallel is how many read-only calls run side by side; 0 is one.
	Parallel int
	// MaxTurns is how often the model is asked in one run; the run then ends with ErrMaxTurns. 0 is no limit.
	MaxTurns int
}

// Run continues the conversation until the model stops, and returns the last reply. It keeps no state, so it may be
// run again after an error. With an error it returns the last reply that the conversation has kept.
func (a Agent) Run(ctx context.Context) (last llm.Reply, err error) {
	if a.Emit == nil {
		a.Emit = func(Event) {}
	}
	if a.Boundary == nil {
		a.Boundary = func(_ context.Context, b Boundary) (bool, error) { return b == BetweenRounds, nil }
	}
	for turn := 1; a.MaxTurns <= 0 || turn <= a.MaxTurns; turn++ {
		reply, err := a.ask(ctx, turn)
		if err != nil {
			return last, err
		}
		last = reply
		boundary := BeforeStop
		if calls := last.Message.Calls(); last.Stop == llm.StopTools && len(calls) > 0 {
			boundary = BetweenRounds
			if err := a.runCalls(ctx, calls); err != nil {
				return last, err
			}
		}
		if last.Stop == llm.StopPaused { // nothing may come in between: the model goes on with what it said
			continue
		}
		if goOn, err := a.Boundary(ctx, boundary); err != nil || !goOn {
			return last, err
		}
	}
	return last, ErrMaxTurns
}

// ask asks the model once. The conversation has the reply when it is returned.
func (a Agent) ask(ctx context.Context, turn int) (llm.Reply, error) {
	req, err := a.Conversation.Request(ctx)
	if err != nil {
		return llm.Reply{}, err
	}
	a.Emit(TurnStarted{Turn: turn})
	reply, err := a.Model.Reply(ctx, req, a.emitDelta)
	if err != nil {
		return llm.Reply{}, err
	}
	reply = repair.Reply(reply, req.Messages, a.toolNames())
	if err := a.Conversation.Append(ctx, reply); err != nil {
		return llm.Reply{}, err
	}
	a.Emit(TurnEnded{Turn: turn, Reply: reply})
	return reply, nil
}

// runCalls runs the calls in order; neighbours that only read run side by side. Every call is answered, cancelled or
// not. After an error, above all when a result could not be kept, no further call starts.
func (a Agent) runCalls(ctx context.Context, calls []llm.Call) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var g sync.WaitGroup
	slots := make(chan struct{}, max(a.Parallel, 1))
	var all results
	for _, c := range calls {
		one := func() {
			r, err := a.call(ctx, c)
			r = all.fit(r)
			// Without the cancel: a call that was cut off is answered, too.
			err = errors.Join(err, a.Conversation.Answer(context.WithoutCancel(ctx), r))
			a.Emit(ToolEnded{Call: c, Result: r, Err: err})
			if err != nil {
				stop(err)
			}
		}
		if t := a.tool(c.Name); t != nil && t.Spec().OnlyReads(c.Input) {
			slots <- struct{}{}
			g.Go(func() { defer func() { <-slots }(); one() })
			continue
		}
		g.Wait()
		one()
	}
	g.Wait()
	return context.Cause(ctx)
}

// call runs one call. A runtime error still leaves a result: the history stays one that the provider accepts.
func (a Agent) call(ctx context.Context, c llm.Call) (r llm.Result, err error) {
	t := a.tool(c.Name)
	switch err = context.Cause(ctx); {
	case err != nil:
		r = llm.ErrorResult("Not started: %v.", err)
	case t == nil:
		r = llm.ErrorResult("There is no tool %q. %s", c.Name, a.choices(c.Name))
	case c.Malformed != "":
		r = malformedResult(c, t.Spec())
	default:
		a.Emit(ToolStarted{Call: c})
		r, err = t.Run(ctx, c, func(s string) { a.Emit(ToolProgress{Call: c, Text: s}) })
		if err != nil {
			r = llm.ErrorResult("Interrupted: %v. The outcome is unknown: check first.", err)
		}
	}
	r.ID = c.ID
	return r, err
}

// tool returns the tool with the name, or nil if the agent has none.
func (a Agent) tool(name string) llm.Tool {
	for _, t := range a.Tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}
