package teammate

import (
	"context"
	"sync/atomic"

	"muster"
)

// shutdown answers the requests by which others ask the member to shut down.
type shutdown struct {
	*self
	granted atomic.Bool // the model has agreed to shut down
}

// Leave answers a shutdown request for a tool call. When it is granted the member's life ends
// after the round of tools.
func (s *shutdown) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := s.Requests.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	// The first decision stands. If the deadline or somebody else was faster, that is what
	// counts here, and not what the model has just said.
	r, _, err = s.Requests.Decide(ctx, id, s.name(), approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		s.granted.Store(true)
	}
	return err
}

// pending returns the shutdown request that waits for the member, or "".
func (s *shutdown) pending(ctx context.Context) (muster.RequestID, error) {
	all, err := s.Requests.Pending(ctx)
	for _, r := range all {
		if r.Kind == muster.AskShutdown && r.To == s.name() {
			return r.ID, err
		}
	}
	return "", err
}

// grant grants a request for an idle member, without asking its model.
func (s *shutdown) grant(ctx context.Context, id muster.RequestID) error {
	_, _, err := s.Requests.Decide(ctx, id, s.name(), true, "idle")
	return err
}
