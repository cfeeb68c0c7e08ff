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
//
// emit gets what f tells while it runs; nil drops it. When callForeign returns, a call of emit that was under way is
// over, and none follows.
func callForeign[T, V any](ctx context.Context, emit func(V), f func(emit func(V)) (T, error)) (T, error) {
	var mu sync.Mutex
	isClosed := emit == nil
	tell := func(v V) {
		mu.Lock()
		defer mu.Unlock()
		if !isClosed {
			emit(v)
		}
	}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		isClosed = true
	}()
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		value, err = f(tell)
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(foreignGrace): // an abandoned f may yet write value and err, so neither is read
			var none T
			return none, context.Cause(ctx)
		}
	}
	return value, err
}

// foreignModel is a model whose calls end soon after their context.
type foreignModel struct{ llm.Model }

// Reply asks the model. After it has returned nothing streams in any more, also where the model's call was abandoned.
func (m foreignModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	return callForeign(ctx, emit, func(emit func(llm.Delta)) (llm.Reply, error) { return m.Model.Reply(ctx, r, emit) })
}

// foreignTool is a tool whose calls end soon after their context.
type foreignTool struct{ llm.Tool }

// Run runs the tool. After it has returned no progress comes any more, also where the tool's call was abandoned.
func (t foreignTool) Run(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error) {
	return callForeign(ctx, progress, func(tell func(string)) (llm.Result, error) { return t.Tool.Run(ctx, c, tell) })
}

// foreignTools wraps each of an embedder's tools.
func foreignTools(tools []llm.Tool) []llm.Tool {
	wrapped := make([]llm.Tool, len(tools))
	for i, t := range tools {
		wrapped[i] = foreignTool{t}
	}
	return wrapped
}
