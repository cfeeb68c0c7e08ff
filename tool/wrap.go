package tool

import (
	"context"

	"muster/llm"
)

// Next runs the tool that a wrapper is around.
type Next = func(context.Context, llm.Call) (llm.Result, error)

// Wrap puts f around t: f runs instead, and calls next to run t. The tool's spec stays as it is.
func Wrap(t llm.Tool, f func(ctx context.Context, c llm.Call, next Next) (llm.Result, error)) llm.Tool {
	if f == nil {
		return t
	}
	return wrapped{t, f}
}

// wrapped is a tool with the function around it.
type wrapped struct {
	llm.Tool
	f func(context.Context, llm.Call, Next) (llm.Result, error)
}

// Run runs the wrapper around the tool. The result answers the call, whatever the wrapper returns.
func (w wrapped) Run(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r, err := w.f(ctx, c, func(ctx context.Context, c llm.Call) (llm.Result, error) {
		return w.Tool.Run(ctx, c, progress)
	})
	r.ID = c.ID
	return r, err
}
