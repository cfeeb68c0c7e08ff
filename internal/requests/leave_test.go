package requests

import (
	"testing"

	"muster"
	"muster/store/mem"
)

// Who leaves ends its own requests and those that it should leave. What others want of it, or of each other, waits on.
func TestLeavingEndsNothingElse(t *testing.T) {
	s := mem.New()
	q := process(s)
	own := plan("own")
	want := map[muster.RequestID]muster.RequestStatus{
		ask(t, q, own).ID: muster.RequestCancelled,
		ask(t, q, muster.Request{Kind: muster.AskShutdown, From: muster.Lead, To: "carol"}).ID:             muster.RequestApproved,
		ask(t, q, muster.Request{Kind: muster.AskShutdown, From: muster.Lead, To: "bob"}).ID:               muster.RequestPending,
		ask(t, q, muster.Request{Kind: muster.AskPermission, From: "bob", To: "carol", Reason: "rm"}).ID:   muster.RequestPending,
		ask(t, q, muster.Request{Kind: muster.AskPlan, From: "bob", To: "carol", Plan: "p", TaskID: 3}).ID: muster.RequestPending,
	}
	must(t, q.Leave(t.Context(), "carol", "it has shut down"))
	for id, is := range want {
		if r, err := q.Get(t.Context(), id); err != nil || r.Status != is {
			t.Errorf("%s of %s is %s, want %s (%v)", r.Kind, r.From, r.Status, is, err)
		}
	}
}
