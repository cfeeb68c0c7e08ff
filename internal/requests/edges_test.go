package requests

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tapped"
	"muster/store/mem"
)

// A plan is dated after the plans for the same claim only: neither another task nor an older claim moves its time.
func TestAPlanIsDatedAfterThoseOfItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*muster.Request){
			"the same claim":   func(*muster.Request) {},
			"another task":     func(r *muster.Request) { r.TaskID = 8 },
			"an earlier claim": func(r *muster.Request) { r.Fence = 1 },
		} {
			s := mem.New()
			q := process(s)
			other := plan("first")
			change(&other)
			other = ask(t, q, other)
			setBack(t, s, other.ID, time.Hour) // as when the clock is set back after it
			got := ask(t, process(s.Handle()), plan("second"))
			isLater := got.CreatedAt > muster.UnixTime(time.Now())
			if isLater != (name == "the same claim") || got.UpdatedAt != got.CreatedAt {
				t.Errorf("%s: created %f, updated %f, now %f", name, got.CreatedAt, got.UpdatedAt, muster.UnixTime(time.Now()))
			}
		}
	})
}

// The asker chooses neither that its request is decided nor how, but it may choose the deadline.
func TestWhatAnAskerChooses(t *testing.T) {
	q := process(mem.New())
	deadline := muster.UnixTime(time.Now().Add(time.Hour))
	r := ask(t, q, muster.Request{Kind: muster.AskPermission, From: "bob", To: muster.User, Reason: "rm", Deadline: deadline,
		Status: muster.RequestApproved, ResolvedBy: muster.User, ResolvedAt: 7, Response: "yes"})
	if r.Status != muster.RequestPending || r.ResolvedBy != "" || r.ResolvedAt != 0 || r.Response != "" || r.Deadline != deadline {
		t.Errorf("%+v", r)
	}
}

// An id that another request has is refused, whatever the two differ in.
func TestAnIDOfAnotherRequestIsHeld(t *testing.T) {
	for name, other := range map[string]muster.Request{
		"kind": {Kind: muster.AskPermission, From: "carol", To: muster.Lead, Reason: "rm"},
		"from": {Kind: muster.AskPlan, From: "bob", To: muster.Lead, Plan: "p", TaskID: 9},
		"to":   {Kind: muster.AskPlan, From: "carol", To: "bob", Plan: "p", TaskID: 9},
	} {
		s := mem.New()
		q := process(s)
		other.ID = ask(t, q, plan("p")).ID
		if _, err := q.Ask(t.Context(), other); !errors.Is(err, muster.ErrHeld) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// Who has sent the mail of a request that others have decided meanwhile has done its part: there is no error.
func TestARequestIsDecidedWhileItsMailIsSent(t *testing.T) {
	s := mem.New()
	puts := 0
	q := process(tapped.Store{Store: s.Handle(), Before: func(_ context.Context, op, key string, _ []byte) error {
		if op != "put" {
			return nil
		}
		if puts++; puts == 2 { // the first one was the request, this one notes that its mail was sent
			id := muster.RequestID(strings.TrimPrefix(key, muster.TableRequests+"/"))
			_, _, err := process(s).Decide(t.Context(), id, muster.Lead, true, "go on")
			require.NoError(t, err)
		}
		return nil
	}})
	r := ask(t, q, plan("p"))
	got := require.Value(q.Get(t.Context(), r.ID))(t)
	if got.Status != muster.RequestApproved || puts != 2 || len(box(t, s, "carol")) != 1 {
		t.Errorf("%+v after %d writes", got, puts)
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
	require.NoError(t, q.Leave(t.Context(), "carol", "it has shut down"))
	for id, is := range want {
		if r, err := q.Get(t.Context(), id); err != nil || r.Status != is {
			t.Errorf("%s of %s is %s, want %s (%v)", r.Kind, r.From, r.Status, is, err)
		}
	}
}
