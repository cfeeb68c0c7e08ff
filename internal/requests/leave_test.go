package requests

import (
	"context"
	"errors"
	"testing"

	"muster"
	"muster/store/mem"
)

// unwritable is a store in which no document can be put.
type unwritable struct{ muster.Store }

func (s unwritable) Table(name string) muster.Table { return unwritableTable{s.Store.Table(name)} }

type unwritableTable struct{ muster.Table }

func (unwritableTable) Put(context.Context, string, []byte, muster.Rev) (muster.Rev, error) {
	return muster.None, muster.Errorf(muster.Unavailable, "the disk is gone")
}

// Leave fails when a request that concerns the member cannot be ended. Otherwise the request would stay pending,
// although nobody will ever decide it.
func TestLeavingFailsWhenARequestCannotBeEnded(t *testing.T) {
	for name, r := range map[string]muster.Request{
		"asked to leave": {Kind: muster.AskShutdown, From: muster.Lead, To: "carol"},
		"its own plan":   plan("p"),
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			ask(t, process(s), r)
			err := process(unwritable{s.Handle()}).Leave(t.Context(), "carol", "it has shut down")
			if !errors.Is(err, muster.ErrUnavailable) {
				t.Errorf("left with %v", err)
			}
			must(t, process(s.Handle()).Leave(t.Context(), "carol", "it has shut down"))
			if pending, err := process(s.Handle()).Pending(t.Context()); err != nil || len(pending) != 0 {
				t.Errorf("still pending: %v, %v", pending, err)
			}
		})
	}
}

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
