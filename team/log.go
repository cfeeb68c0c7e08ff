package team

import (
	"context"
	"errors"
	"log/slog"

	"muster/llm"
)

// logDropped logs an error that stops nobody: whoever comes by does again what has failed. An error that only says that
// ctx has ended is not worth a line.
func logDropped(ctx context.Context, log *slog.Logger, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	log.WarnContext(ctx, "error dropped", "what", what, "err", causeText(err))
}

// causeText returns an error as the log has it. Of a model's error that is its kind and status: the provider's words
// may quote the request.
func causeText(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return slog.GroupValue(slog.String("kind", string(e.Kind)), slog.Int("status", e.Status)).String()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}
