package team

import (
	"context"

	"muster"
)

// Requests are the questions that wait for an answer: plans to approve, members to shut down and others.
type Requests struct{ t *Team }

// Requests returns the requests of the team.
func (t *Team) Requests() Requests { return Requests{t} }

// Pending returns the requests that nobody has answered yet.
func (s Requests) Pending(ctx context.Context) ([]muster.Request, error) {
	return s.t.services().Requests(ctx).Pending(ctx)
}

// List returns all requests, answered ones too.
func (s Requests) List(ctx context.Context) ([]muster.Request, error) {
	return s.t.services().Requests(ctx).List(ctx)
}

// Get returns one request.
func (s Requests) Get(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	return s.t.services().Requests(ctx).Get(ctx, id)
}

// Answer approves or rejects a request as the user, with a text for whoever asked. When it was answered before, that
// answer stands: it is returned, and isFirst is false.
func (s Requests) Answer(
	ctx context.Context, id muster.RequestID, approve bool, text string,
) (r muster.Request, isFirst bool, err error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return r, false, err
	}
	// The first decision is a compare-and-set of the request, so that of two who decide at the same time one is first.
	return w.Requests(ctx).Decide(ctx, id, muster.User, approve, text)
}
