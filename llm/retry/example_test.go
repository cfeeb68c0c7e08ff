package retry_test

import (
	"context"
	"fmt"
	"time"

	"muster/llm"
	"muster/llm/retry"
)

// flaky is overloaded once, and then answers.
type flaky struct{ asked int }

func (f *flaky) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	if f.asked++; f.asked == 1 {
		return llm.Reply{}, llm.Errorf(llm.Overloaded, "try again")
	}
	return llm.Reply{Stop: llm.StopEnd}, nil
}

// Models of one key share a Limiter, so that a rate limit holds all of them back.
func ExampleWrap() {
	m := &flaky{}
	model := retry.Wrap(m, retry.Options{Min: time.Millisecond, Limiter: new(retry.Limiter)})
	reply, err := model.Reply(context.Background(), llm.Request{}, nil)
	fmt.Println(reply.Stop, err, m.asked)
	// Output: end <nil> 2
}
