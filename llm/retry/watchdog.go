package retry

import (
	"context"
	"errors"
	"math"
	"time"

	"muster/llm"
)

// watch asks the model once, and ends it when it is silent for too long.
func (s *steady) watch(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := s.o.FirstTimeout
	bark := time.AfterFunc(limited(patience), func() { cancel(errSilent) })
	defer bark.Stop()
	reply, err := s.model.Reply(watched, r, func(d llm.Delta) {
		if d.Text != "" || d.Think != "" {
			patience = s.o.IdleTimeout
		}
		bark.Reset(limited(patience))
		emit(d)
	})
	if err != nil && ctx.Err() == nil && context.Cause(watched) == errSilent {
		return llm.Reply{}, llm.Errorf(llm.Incomplete, "the model was silent for %v", patience)
	}
	return reply, err
}

// errSilent is the cause with which a silent reply is cancelled.
var errSilent = errors.New("the model is silent")

// limited is d for a timer: negative is as long as a timer can be.
func limited(d time.Duration) time.Duration {
	if d < 0 {
		return math.MaxInt64
	}
	return d
}
