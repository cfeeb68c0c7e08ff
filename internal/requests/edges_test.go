package requests

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"muster"
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

// Await reports a request that cannot be read, and one that is not there.
func TestAwaitOfWhatIsNotThere(t *testing.T) {
	q := process(mem.New())
	for _, id := range []muster.RequestID{"ffffffff", "x"} {
		if _, err := q.Await(t.Context(), id); !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
