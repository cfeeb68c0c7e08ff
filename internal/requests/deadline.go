package requests

import (
	"time"

	"muster"
	"muster/internal/state"
)

// Left returns how long a request with a deadline may still wait; at zero or less it is overdue. The
// deadline is a time of day, and clocks are set, so a request also waits at most as long as it was given
// when it was made, counted from when this process first saw it by the monotonic clock. A process that has
// just seen it trusts the record. Without a deadline Left is 0.
func (q *Requests) Left(r muster.Request, now time.Time) time.Duration {
	if r.Deadline == 0 {
		return 0
	}
	end := muster.Time(r.Deadline)
	left := end.Sub(now)
	if given := end.Sub(muster.Time(r.CreatedAt)); given > 0 && r.CreatedAt > 0 {
		q.items.View(func() {
			if since := q.seen[r.ID]; !since.IsZero() {
				given -= now.Sub(since)
			}
		})
		left = min(left, given)
	}
	return left
}

// overdue reports whether r is pending and has waited longer than it may.
func (q *Requests) overdue(r muster.Request, now time.Time) bool {
	return r.Deadline != 0 && !Final(r) && q.Left(r, now) <= 0
}

// onChange records when this process first saw each pending request, and forgets those that are final. The
// collection calls it under its lock, for every change.
func (q *Requests) onChange(c state.Change[muster.Request]) {
	id := muster.RequestID(c.Key)
	switch {
	case c.Err != nil: // if it can be read again later, it has still waited since it was first seen
	case c.New == nil || Final(*c.New):
		delete(q.seen, id)
	case q.seen[id].IsZero():
		q.seen[id] = time.Now()
	}
}
