package board

import (
	"context"
	"errors"

	"muster"
	"muster/journal"
)

// emit writes events to the journal after a step that is already durable. It goes on when the caller's context has
// ended, and only an engine that cannot be reached is an error: nothing undoes the step.
func (b *Board) emit(ctx context.Context, events ...muster.Event) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	var down error
	for _, e := range events {
		if err := b.journal.Emit(ctx, e); errors.Is(err, muster.ErrUnavailable) {
			down = err
		}
	}
	return down
}

// recordClaim writes the line that readers of the claims' own log expect.
func (b *Board) recordClaim(
	ctx context.Context, kind string, t muster.Task, owner muster.Name, role, source string,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	line, err := muster.MarshalLine(struct {
		Event  string        `json:"event"`
		Task   muster.TaskID `json:"task_id"`
		Owner  muster.Name   `json:"owner"`
		Role   string        `json:"role"`
		Source string        `json:"source"`
		TS     float64       `json:"ts"`
	}{kind, t.ID, owner, role, source, t.UpdatedAt})
	if err != nil {
		return nil // a flat struct of words and numbers always encodes
	}
	if _, err = b.log.Append(ctx, muster.StreamClaims, muster.Anywhere, line); errors.Is(err, muster.ErrUnavailable) {
		return err
	}
	return nil
}

// event returns an event about t.
func event(kind string, t muster.Task, who muster.Name, fields map[string]any) muster.Event {
	return muster.Event{Kind: kind, At: t.UpdatedAt, Member: who, Task: t.ID, Fields: fields}
}

// attentionEvent returns the event of a task that was given up.
func attentionEvent(t muster.Task, who muster.Name) muster.Event {
	return event(journal.TaskAttention, t, who, map[string]any{"reason": t.Result})
}
