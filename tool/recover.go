package tool

import (
	"context"
	"encoding/json"

	"muster/llm"
)

// Recoverer is a tool whose outcome durable records tell. Of any other tool nobody knows what became of a call that the
// end of a process cut off, and the model is told to check; a call of a Recoverer is answered by Recover instead.
type Recoverer interface {
	llm.Tool
	// Recover answers a call that was cut off. It reads the records; with resume it may also take up what the call had
	// begun, and wait for its end. known is false when the records tell nothing.
	Recover(ctx context.Context, c llm.Call, resume bool) (r llm.Result, known bool, err error)
}

// Recoverable makes a Recoverer of t, whose input is an In. A call whose input is none never ran: nothing is known of
// it.
func Recoverable[In any](t llm.Tool, f func(ctx context.Context, in In, resume bool) (llm.Result, bool, error)) Recoverer {
	return recoverable{t, func(ctx context.Context, c llm.Call, resume bool) (llm.Result, bool, error) {
		var in In
		if json.Unmarshal(c.Input, &in) != nil {
			return llm.Result{}, false, nil
		}
		r, known, err := f(ctx, in, resume)
		r.ID = c.ID
		return r, known, err
	}}
}

// recoverable is a tool with the function that answers its calls which were cut off.
type recoverable struct {
	llm.Tool
	answer func(context.Context, llm.Call, bool) (llm.Result, bool, error)
}

func (t recoverable) Recover(ctx context.Context, c llm.Call, resume bool) (llm.Result, bool, error) {
	return t.answer(ctx, c, resume)
}
