package team

import (
	"context"

	"muster"
	"muster/internal/trust"
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
	return s.AnswerFor(ctx, id, approve, muster.ScopeOnce, text)
}

// AnswerFor is Answer, for longer than once: a permission that is approved for the run, or for good, is not asked for
// again. What is approved for good is kept in the user's state, and not in the repository.
// The record is decided first: a grant that is lost in a crash between the two is only asked for again.
func (s Requests) AnswerFor(
	ctx context.Context, id muster.RequestID, approve bool, scope muster.RequestScope, text string,
) (r muster.Request, isFirst bool, err error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return r, false, err
	}
	// The first decision is a compare-and-set of the request, so that of two who decide at the same time one is first.
	r, isFirst, err = w.Requests(ctx).DecideFor(ctx, id, muster.User, approve, scope, text)
	if err == nil && r.Scope == muster.ScopeAlways && r.Status == muster.RequestApproved {
		err = s.t.site.workspace.Trust().Change(ctx, func(t *trust.Settings) {
			for _, what := range r.Asks {
				t.Allow(trust.Grant{Kind: trust.Permission, Name: what, At: r.ResolvedAt})
			}
		})
	}
	return r, isFirst, err
}
