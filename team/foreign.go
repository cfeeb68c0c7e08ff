package team

import (
	"context"
	"sync"
	"time"

	"muster/llm"
)

// foreignGrace is how long a call of an embedder's code may go on after its context has ended. It is shorter than
// grace, so that a member whose model or tool does not heed its context still ends in order. It is longer than the five
// seconds that a member's last writes have: a write that a model's retry began just before the end is over by then.
const foreignGrace = 6 * time.Second

// callForeign runs a call of code that is not ours: of a model or of an embedder's tool. It returns what f returns, or
// the cause of ctx's end when f goes on for foreignGrace after that. Nobody reads what an abandoned f returns, so that
// it can write nothing: this is what lets a run wait for all its members without a limit.
func callForeign[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	// The channel has room for the answer, so that an abandoned f does not block for ever when it returns.
	answered := make(chan answer, 1)
	go func() {
		value, err := f()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answered:
		return a.value, a.err
	case <-time.After(foreignGrace):
		var none T
		return none, context.Cause(ctx)
	}
}

// untilClosed returns a function that calls f until closeIt is called. closeIt waits for a call under way, so that f is
// not called after it has returned.
func untilClosed[T any](f func(T)) (call func(T), closeIt func()) {
	var mu sync.Mutex
	closed := false
	call = func(v T) {
		mu.Lock()
		defer mu.Unlock()
		if !closed && f != nil {
			f(v)
		}
	}
	return call, func() {
		mu.Lock()
		defer mu.Unlock()
		closed = true
	}
}

// foreignModel is a model whose calls end soon after their context.
type foreignModel struct{ llm.Model }

// Reply asks the model. After it has returned nothing streams in any more, also where the model's call was abandoned.
func (m foreignModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	call, closeIt := untilClosed(emit)
	defer closeIt()
	return callForeign(ctx, func() (llm.Reply, error) { return m.Model.Reply(ctx, r, call) })
}

// foreignTool is a tool whose calls end soon after their context.
type foreignTool struct{ llm.Tool }

// Run runs the tool. After it has returned no progress comes any more, also where the tool's call was abandoned.
func (t foreignTool) Run(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error) {
	call, closeIt := untilClosed(progress)
	defer closeIt()
	return callForeign(ctx, func() (llm.Result, error) { return t.Tool.Run(ctx, c, call) })
}

// foreignTools wraps each of an embedder's tools.
func foreignTools(tools []llm.Tool) []llm.Tool {
	wrapped := make([]llm.Tool, len(tools))
	for i, t := range tools {
		wrapped[i] = foreignTool{t}
	}
	return wrapped
}
