package llm

import (
	"context"
	"encoding/json"
	"fmt"
)

// Spec is what a model is told of a tool, and, in the fields without a name in JSON, what whoever runs it
// must know. Such a fact is a property of the tool: nothing outside keeps a list of tools by name.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"` // of the input, an object; frozen bytes, made once
	// ReadOnly: it may run beside other read-only calls of the same reply.
	ReadOnly bool `json:"-"`
	// NeedsPlan: it changes the task's files, or lands them. Where a plan is required it is refused until
	// one is approved.
	NeedsPlan bool `json:"-"`
	// Polls: it is asked again and again until something has changed. The same answer twice is no sign of a
	// loop.
	Polls bool `json:"-"`
}

// Tool is something that a model may call. One value serves every agent that has it, so it is safe for
// concurrent use. Package tool makes one of a typed function.
type Tool interface {
	// Spec is what the model is told; the same at each call.
	Spec() Spec
	// Run runs one call; progress gets lines for people while it runs. What the
	// model can mend is a Result with IsError; an error is the runtime's
	// (cancelled, store broken) and ends the turn.
	Run(ctx context.Context, c Call, progress func(string)) (Result, error)
}

// ErrorResult is a result that tells the model what went wrong and what to do instead. Package tool makes
// one of an error.
func ErrorResult(f string, a ...any) Result {
	return Result{IsError: true, Parts: []Part{Text{Text: fmt.Sprintf(f, a...)}}}
}
