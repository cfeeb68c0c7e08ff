package retry

import (
	"context"
	"errors"
	"math"
	"time"

	"muster/llm"
)

// replyWatched asks the model once, and cancels it when it is silent for too long.
func (s *retrier) replyWatched(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The model emits from one goroutine, and nothing after it has returned, so patience needs no lock.
	patience := s.o.FirstTimeout
	bark := time.AfterFunc(timerDuration(patience), func() { cancel(errSilent) })
	defer bark.Stop()
	reply, err := s.model.Reply(watched, r, func(d llm.Delta) {
		if d.Text != "" || d.Think != "" {
			patience = s.o.IdleTimeout
		}
		bark.Reset(timerDuration(patience))
		emit(d)
	})
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(watched), errSilent) {
		return llm.Reply{}, llm.Errorf(llm.Incomplete, "the model was silent for %v", patience)
	}
	return reply, err
}

// errSilent is the cause with which a silent reply is cancelled.
var errSilent = errors.New("the model is silent")

// timerDuration returns d for a timer; negative means as long as a timer can be.
func timerDuration(d time.Duration) time.Duration {
	if d < 0 {
		return math.MaxInt64
	}
	return d
}
