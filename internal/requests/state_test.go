package requests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

func TestAFinalRequestStaysAsItIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := process(mem.New())
		r := require.Value(q.Ask(t.Context(), plan("text")))(t)
		final := muster.RequestPending
		for _, to := range rapid.SliceOfN(rapid.SampledFrom([]muster.RequestStatus{muster.RequestApproved,
			muster.RequestRejected, muster.RequestExpired, muster.RequestCancelled}), 1, 5).Draw(rt, "statuses") {
			got, ended, err := q.end(t.Context(), r.ID, decision{status: to, by: r.To, response: ""})
			require.NoError(t, err)
			if isFirst := final == muster.RequestPending; isFirst {
				final = to
			} else if ended {
				rt.Fatalf("a request that is %s was ended as %s", final, to)
			}
			if got.Status != final || !Final(got) {
				rt.Fatalf("the request is %s, want %s", got.Status, final)
			}
		}
	})
}

func TestApproved(t *testing.T) {
	req := func(status muster.RequestStatus, at float64, change func(*muster.Request)) muster.Request {
		r := plan("text")
		r.Status, r.CreatedAt, r.PlanHash = status, at, PlanHash("text")
		if change != nil {
			change(&r)
		}
		return r
	}
	yes, no, wait := muster.RequestApproved, muster.RequestRejected, muster.RequestPending
	for name, c := range map[string]struct {
		reqs []muster.Request
		want bool
	}{
		"none":       {nil, false},
		"waits":      {[]muster.Request{req(wait, 1, nil)}, false},
		"approved":   {[]muster.Request{req(yes, 1, nil)}, true},
		"rejected":   {[]muster.Request{req(no, 1, nil)}, false},
		"better one": {[]muster.Request{req(no, 1, nil), req(yes, 2, nil)}, true},
		"replaced":   {[]muster.Request{req(yes, 1, nil), req(wait, 2, nil)}, false},
		// Two plans can have the same time, which has the clock's resolution. The later one in the list is the newer one.
		"replaced at once": {[]muster.Request{req(yes, 1, nil), req(wait, 1, nil)}, false},
		"better at once":   {[]muster.Request{req(no, 1, nil), req(yes, 1, nil)}, true},
		"taken back after": {[]muster.Request{req(yes, 1, nil), req(muster.RequestCancelled, 2, nil)}, true},
		"another task":     {[]muster.Request{req(yes, 1, func(r *muster.Request) { r.TaskID = 8 })}, false},
		"an older claim":   {[]muster.Request{req(yes, 1, func(r *muster.Request) { r.Fence = 1 })}, false},
		"another text":     {[]muster.Request{req(yes, 1, func(r *muster.Request) { r.Plan = "text, and more" })}, false},
		"no text":          {[]muster.Request{req(yes, 1, func(r *muster.Request) { r.PlanHash = "" })}, false},
		"another kind":     {[]muster.Request{req(yes, 1, func(r *muster.Request) { r.Kind = muster.AskPermission })}, false},
	} {
		if Approved(c.reqs, 9, 2) != c.want {
			t.Errorf("%s: not %v", name, c.want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		kind  muster.RequestKind
		to    muster.Name
		after time.Duration
		then  muster.RequestStatus
	}{
		{muster.AskShutdown, "bob", 30 * time.Second, muster.RequestExpired},
		{muster.AskPermission, "user", 10 * time.Minute, muster.RequestRejected},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := mem.New()
			q := process(s)
			start := time.Now()
			r := ask(t, q, muster.Request{Kind: c.kind, From: "lead", To: c.to, Reason: "x"})
			if ended, err := process(s).Expire(t.Context(), start.Add(c.after-time.Nanosecond)); err != nil || len(ended) != 0 {
				t.Fatalf("too early: %v %v", ended, err)
			}
			r = require.Value(q.Await(t.Context(), r.ID))(t)
			if late := time.Since(start) - c.after; late < 0 || late > time.Millisecond || r.Status != c.then || r.ResolvedBy != muster.System {
				t.Fatalf("%s after %s by %s", r.Status, time.Since(start), r.ResolvedBy)
			}
			d, now, err := q.Decide(t.Context(), r.ID, c.to, true, "late")
			require.NoError(t, err)
			if now || d.Status != c.then {
				t.Fatalf("decided after its end: %+v", d)
			}
			if got := box(t, s, "lead"); len(got) != 0 && c.kind == muster.AskShutdown {
				t.Fatalf("nobody answered, but the lead has %+v", got)
			}
		})
	}
}

func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		q, other := process(s), process(s.Handle())
		ask(t, q, plan("waits as long as it takes"))
		a := ask(t, q, muster.Request{Kind: muster.AskShutdown, From: "lead", To: "bob"})
		time.Sleep(time.Hour)
		for i, q := range []*Requests{other, q} {
			ended := require.Value(q.Expire(t.Context(), time.Now()))(t)
			if len(ended) != 1-i || i == 0 && (ended[0].ID != a.ID || ended[0].Status != muster.RequestExpired) {
				t.Fatalf("process %d ended %+v", i, ended)
			}
		}
		if pending, _ := q.Pending(t.Context()); len(pending) != 1 || pending[0].Kind != muster.AskPlan {
			t.Fatalf("%+v", pending)
		}
	})
}

func TestAwaitHearsWhatAnotherProcessDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		q := process(s)
		r := ask(t, q, plan("p"))
		start := time.Now()
		go func() {
			time.Sleep(3 * time.Hour)
			ask(t, q, plan("another one wakes it and changes nothing"))
			time.Sleep(time.Hour)
			if _, _, err := process(s.Handle()).Decide(context.Background(), r.ID, "user", true, "well"); err != nil {
				t.Error(err)
			}
		}()
		d := require.Value(q.Await(t.Context(), r.ID))(t)
		if d.Status != muster.RequestApproved || d.ResolvedBy != muster.User || time.Since(start) != 4*time.Hour {
			t.Fatalf("%+v after %s", d, time.Since(start))
		}
	})
}

func TestAwaitEndsWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := process(mem.New())
		r := ask(t, q, plan("p"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(muster.CauseShutdown) })
		if _, err := q.Await(ctx, r.ID); !errors.Is(err, muster.CauseShutdown) {
			t.Fatalf("got %v", err)
		}
		if _, err := q.Await(t.Context(), "00000000"); !errors.Is(err, muster.ErrNotFound) {
			t.Fatalf("got %v", err)
		}
		require.NoError(t, q.Withdraw(t.Context(), "carol", "the claim is gone",
			func(o muster.Request) bool { return o.ID == r.ID }))
		d := require.Value(q.Get(t.Context(), r.ID))(t)
		if d.Status != muster.RequestCancelled || d.ResolvedBy != "carol" {
			t.Fatalf("%+v", d)
		}
		if d, now, err := q.Decide(t.Context(), r.ID, "lead", true, ""); err != nil || now || d.Status != muster.RequestCancelled {
			t.Fatalf("%+v %v %v", d, now, err)
		}
	})
}
