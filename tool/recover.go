package tool

import (
	"context"
	"encoding/json"

	"muster/llm"
)

// Recoverer is a tool whose outcome can be read from durable records. When the end of a process cuts off a
// call of any other tool, nobody knows what became of it, and the model is told to check. A call of a
// Recoverer is answered by Recover instead.
type Recoverer interface {
	llm.Tool
	// Recover answers a call that was cut off, from the records. With resume it may also continue what the
	// call had begun, and wait for its end. known is false when the records say nothing.
	Recover(ctx context.Context, c llm.Call, resume bool) (r llm.Result, known bool, err error)
}

// Recoverable makes a Recoverer of t, whose input is an In. f answers as Recover does. A call whose input
// is not an In has never run, so nothing is known of it.
func Recoverable[In any](
	t llm.Tool, f func(ctx context.Context, in In, resume bool) (r llm.Result, known bool, err error),
) Recoverer {
	return recoverable[In]{t, f}
}

// recoverable is a tool with the function that answers its calls which were cut off.
type recoverable[In any] struct {
	llm.Tool
	answer func(context.Context, In, bool) (llm.Result, bool, error)
}

// Recover answers a call that was cut off.
func (t recoverable[In]) Recover(ctx context.Context, c llm.Call, resume bool) (llm.Result, bool, error) {
	var in In
	if json.Unmarshal(c.Input, &in) != nil {
		return llm.Result{}, false, nil
	}
	r, known, err := t.answer(ctx, in, resume)
	r.ID = c.ID
	return r, known, err
}
