package teammate

import (
	"context"

	"muster/llm"
	"muster/loop"
)

// Session is a member's conversation as its engine sees it. The member owns the transcript,
// the mail and the limits; an engine only asks for the next request and hands in what came.
type Session interface {
	loop.Conversation
	// Boundary is called wherever the engine can take new input: ours between two rounds of
	// tools, an external agent's only before its next prompt. What it adds is durable before
	// it returns.
	Boundary(ctx context.Context, b loop.Boundary) (goOn bool, err error)
	// Emit shows an event; it never blocks and is never stored.
	Emit(loop.Event)
}

// Engine runs one work phase to its stop. It keeps nothing that the Session does not have, so
// that after a crash any engine can go on with the conversation.
type Engine interface {
	// Work runs one phase. The tools are the session's, given once for the whole phase.
	Work(ctx context.Context, s Session, tools []llm.Tool) error
	// Close ends the engine's own processes; nothing of them is alive afterwards.
	Close() error
}

// Loop is the engine that muster has of its own: it asks a model and runs the tools that the
// model calls.
type Loop struct{ Model llm.Model }

// parallel is how many read-only calls of one reply run side by side.
const parallel = 8

// Work runs the loop until it stops.
func (e Loop) Work(ctx context.Context, s Session, tools []llm.Tool) error {
	_, err := loop.Agent{Model: e.Model, Tools: tools, Conversation: s, Boundary: s.Boundary, Emit: s.Emit,
		Parallel: parallel}.Run(ctx)
	return err
}

// Close does nothing: Loop has no processes of its own.
func (Loop) Close() error { return nil }
