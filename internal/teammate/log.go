package teammate

import (
	"context"
	"errors"
	"log/slog"

	"muster"
	"muster/llm"
)

// logger returns the log of this member. It says nothing where the team has none.
func (s *self) logger() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log.With("member", s.name())
}

// logDropped logs an error that does not stop the member: what failed is for people only, or
// is done again later. An error that only says that the member was cancelled is not worth a
// line.
func (s *self) logDropped(ctx context.Context, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	s.logger().WarnContext(ctx, "error dropped", "what", what, "err", err)
}

// logClaimLost logs that the member no longer owns the task that it worked on.
func (s *self) logClaimLost(ctx context.Context, t muster.Task, why error) {
	s.logger().InfoContext(ctx, "claim lost", "task", t.ID, "fence", t.Fence, "cause", why)
}

// logRetry logs that the model is asked again. What the provider has answered stays out of
// it: it may quote the request.
func (s *self) logRetry(wait string, why error) {
	kind, status := llm.KindOf(why), 0
	if e, ok := errors.AsType[*llm.Error](why); ok {
		status = e.Status
	}
	s.logger().Info("model retry", "kind", string(kind), "status", status, "wait", wait)
}
