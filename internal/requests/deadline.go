package requests

import (
	"time"

	"muster"
)

// Left is how long a request with a deadline may wait yet; at nothing or less it is overdue. Its deadline is a time of day,
// and clocks are set: it waits at most as long as it was given when it was made, counted from when this process saw it
// first by a clock that nobody sets. Who has just seen it knows no better than the record. Without a deadline it is 0.
func (q *Requests) Left(r muster.Request, now time.Time) time.Duration {
	if r.Deadline == 0 {
		return 0
	}
	end := muster.Time(r.Deadline)
	left := end.Sub(now)
	if given := end.Sub(muster.Time(r.CreatedAt)); given > 0 && r.CreatedAt > 0 {
		left = min(left, given-now.Sub(q.index.since(r, now)))
	}
	return left
}

func (q *Requests) overdue(r muster.Request, now time.Time) bool {
	return r.Deadline != 0 && q.Left(r, now) <= 0
}

// since is when this process saw first that r waits; now if it did not yet.
func (x *index) since(r muster.Request, now time.Time) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at, ok := x.seen[r.ID]; ok {
		return at
	}
	return now
}

// note remembers since when r waits, as long as it does. The lock is held.
func (x *index) note(r muster.Request) {
	if Final(r) {
		delete(x.seen, r.ID)
		return
	}
	if x.seen == nil {
		x.seen = map[muster.RequestID]time.Time{}
	}
	if _, ok := x.seen[r.ID]; !ok {
		x.seen[r.ID] = time.Now()
	}
}
