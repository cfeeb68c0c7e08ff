package requests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/store/mem"
	"muster/store/storetest"
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

// Await reports a request that cannot be read, and one that is not there.
func TestAwaitOfWhatIsNotThere(t *testing.T) {
	q := process(mem.New())
	for _, id := range []muster.RequestID{"ffffffff", "x"} {
		if _, err := q.Await(t.Context(), id); !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Who waits for a request ends it at its deadline, and reports what keeps it from that.
func TestAwaitEndsItAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storetest.FailEach(t, isState, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
			s := mem.New()
			r := ask(t, process(s), muster.Request{Kind: muster.AskShutdown, From: muster.Lead, To: "bob"})
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			got, err := process(wrap(s.Handle())).Await(ctx, r.ID)
			if err == nil && (got.Status != muster.RequestExpired || got.ResolvedBy != muster.System) {
				t.Errorf("ended as %+v", got)
			}
			return err
		})
	})
}

// A request says when it was changed last.
func TestUpdatedAtIsTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []muster.Request{plan("p"), {Kind: muster.AskShutdown, From: muster.Lead, To: "bob"}} {
			q := process(mem.New())
			r = ask(t, q, r)
			if r.CreatedAt != muster.UnixTime(time.Now()) || r.UpdatedAt != r.CreatedAt {
				t.Errorf("%s: created %f, updated %f", r.Kind, r.CreatedAt, r.UpdatedAt)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := q.Await(ctx, r.ID)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			d, _, err := q.Decide(t.Context(), r.ID, r.To, true, "")
			must(t, err)
			if d.ResolvedAt != r.CreatedAt+1 || d.UpdatedAt != d.ResolvedAt {
				t.Errorf("%s: created %f, resolved %f, updated %f", r.Kind, d.CreatedAt, d.ResolvedAt, d.UpdatedAt)
			}
		}
	})
}

// A request that another program has deleted is gone, and nothing else changes.
func TestADeletedRequestIsGone(t *testing.T) {
	s := mem.New()
	q := process(s)
	r, other := ask(t, q, plan("p")), ask(t, q, plan("q"))
	d, err := s.Table(muster.TableRequests).Get(t.Context(), string(r.ID))
	must(t, err)
	must(t, s.Table(muster.TableRequests).Delete(t.Context(), d.Key, d.Rev))
	if all, err := q.List(t.Context()); err != nil || len(all) != 1 || all[0].ID != other.ID {
		t.Errorf("the requests are %+v, %v", all, err)
	}
}
