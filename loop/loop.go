// Package loop runs one agent's turns: ask the model, run its tools, append the results, until it stops.
package loop

import (
	"context"
	"errors"
	"sync"

	"muster/llm"
)

// Conversation is the history, owned by the caller. Append and Answer are durable when they return.
type Conversation interface {
	// Request is what to send now: the prefix, and the messages as compaction leaves them.
	Request(ctx context.Context) (llm.Request, error)
	// Append adds a finished reply. Being durable, it is also the record that its calls may have begun.
	Append(ctx context.Context, r llm.Reply) error
	// Answer adds the result of one call as soon as it is there: a crash in the third call keeps the first two.
	// The conversation puts the results into one message, in the order of the calls. Safe for concurrent use.
	Answer(ctx context.Context, r llm.Result) error
}

// Point is where something from outside may enter: between two rounds of tools, and at the stop.
type Point int

const (
	Between Point = iota
	AtStop
)

// Agent is what the loop needs. Boundary may append to the conversation (mail, results of background
// jobs, reminders) and says whether to go on: between rounds no means that a tool ended the work (idle,
// a complete_task that landed); at the stop yes means that something came in. Its error ends the run (turns, budget, a loop).
// Without a Boundary the agent goes on until its first stop.
type Agent struct {
	Model        llm.Model
	Tools        []llm.Tool
	Conversation Conversation
	Boundary     func(context.Context, Point) (bool, error)
	Emit         func(any) // llm.Delta, and what a face shows; never blocks, called from several goroutines
	Parallel     int       // how many read-only calls run side by side; 0 is one
}

// Run goes on from wherever the conversation stands. It keeps no state: after an error it may be run again.
func (a Agent) Run(ctx context.Context) (llm.Stop, error) {
	if a.Emit == nil {
		a.Emit = func(any) {}
	}
	if a.Boundary == nil {
		a.Boundary = func(_ context.Context, p Point) (bool, error) { return p == Between, nil }
	}
	for {
		req, err := a.Conversation.Request(ctx)
		if err != nil {
			return "", err
		}
		rep, err := a.Model.Reply(ctx, req, func(d llm.Delta) { a.Emit(d) })
		if err != nil {
			return "", err
		}
		if err := a.Conversation.Append(ctx, rep); err != nil {
			return "", err
		}
		point := AtStop
		if calls := rep.Message.Calls(); rep.Stop == llm.StopTools && len(calls) > 0 {
			point = Between
			if err := a.run(ctx, calls); err != nil {
				return "", err
			}
		}
		if rep.Stop == llm.StopPaused { // nothing may come in between: the model goes on with what it said
			continue
		}
		if on, err := a.Boundary(ctx, point); err != nil || !on {
			return rep.Stop, err
		}
	}
}

// run runs the calls in order; neighbours that only read run side by side. Every call is answered, cancelled or not;
// after an error, a result that could not be kept above all, none is started any more.
func (a Agent) run(ctx context.Context, calls []llm.Call) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var g sync.WaitGroup
	slots := make(chan struct{}, max(a.Parallel, 1))
	for _, c := range calls {
		one := func() {
			r, err := a.call(ctx, c)
			if err = errors.Join(err, a.Conversation.Answer(context.WithoutCancel(ctx), r)); err != nil {
				stop(err)
			}
		}
		if t := a.tool(c.Name); t != nil && t.Spec().ReadOnly {
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
		r = llm.ErrorResult("There is no tool %q.", c.Name)
	default:
		if r, err = t.Run(ctx, c, func(s string) { a.Emit(s) }); err != nil {
			r = llm.ErrorResult("Interrupted: %v. The outcome is unknown: check first.", err)
		}
	}
	r.ID = c.ID
	return r, err
}

func (a Agent) tool(name string) llm.Tool {
	for _, t := range a.Tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}
