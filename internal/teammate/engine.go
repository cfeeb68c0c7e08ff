package teammate

import (
	"context"

	"muster/llm"
	"muster/loop"
)

// Session is a member's conversation as its engine sees it. The member owns it: transcript, mail, limits.
type Session interface {
	loop.Conversation
	// Boundary is called wherever the engine can take new input: ours between two rounds of tools,
	// an external agent's only before its next prompt. What it adds is durable before it returns.
	Boundary(ctx context.Context, p loop.Point) (goOn bool, err error)
	// Emit shows; it never blocks and is never stored.
	Emit(any)
}

// Engine runs one WORK phase to its stop. It keeps nothing that the Session does not have.
type Engine interface {
	Work(ctx context.Context, s Session) (llm.Stop, error)
	// Close ends the engine's own processes; nothing of them is alive afterwards.
	Close() error
}

// Loop is our engine: a model and its tools, already wrapped.
type Loop struct {
	Model llm.Model
	Tools func() []llm.Tool // bound when work starts: an idle member holds none
}

// parallel is how many read-only calls of one reply run side by side.
const parallel = 8

// Work runs the loop until it stops.
func (e Loop) Work(ctx context.Context, s Session) (llm.Stop, error) {
	return loop.Agent{Model: e.Model, Tools: e.Tools(), Conversation: s, Boundary: s.Boundary, Emit: s.Emit, Parallel: parallel}.Run(ctx)
}

// Close has nothing to end.
func (Loop) Close() error { return nil }
