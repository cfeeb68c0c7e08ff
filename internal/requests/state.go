package requests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"muster"
	"muster/internal/editdist"
	"muster/internal/lazyregexp"
	"muster/internal/state"
	"muster/internal/text"
)

// Final reports whether nothing can happen to r any more. A request is pending once, and final ever after:
// its first decision stands.
func Final(r muster.Request) bool { return r.Status != muster.RequestPending }

// How long a request of a kind waits. A plan waits as long as it takes.
const (
	ShutdownWait   = 30 * time.Second
	PermissionWait = 10 * time.Minute
	InterruptWait  = 5 * time.Second // the turn that was meant is over soon
)

// waits is how long a request of a kind waits before it ends by itself; 0 is for ever.
var waits = map[muster.RequestKind]time.Duration{
	muster.AskShutdown: ShutdownWait, muster.AskPermission: PermissionWait,
	muster.AskInterrupt: InterruptWait,
}

// late returns the status of a request of the kind after its deadline. A permission that nobody gave counts
// as refused.
func late(k muster.RequestKind) muster.RequestStatus {
	if k == muster.AskPermission {
		return muster.RequestRejected
	}
	return muster.RequestExpired
}

// PlanHash returns a digest of a plan's text. An approval holds for the text with this digest only.
func PlanHash(plan string) string {
	sum := sha256.Sum256([]byte(plan))
	return hex.EncodeToString(sum[:])
}

// Approved reports whether the task may be worked on under the claim with the fence. The newest plan for
// the claim that was not cancelled must be approved, and its text must be the one that was approved. A
// newer plan replaces an older one, even one that is approved.
func Approved(reqs []muster.Request, task muster.TaskID, fence int) bool {
	var last muster.Request
	for _, r := range reqs {
		isFor := r.Kind == muster.AskPlan && r.TaskID == task && r.Fence == fence
		if isFor && r.Status != muster.RequestCancelled && r.CreatedAt >= last.CreatedAt {
			last = r
		}
	}
	return last.Status == muster.RequestApproved && last.PlanHash == PlanHash(last.Plan)
}

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
	if made := muster.Time(r.CreatedAt); end.After(made) {
		given := end.Sub(made)
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

// idRule is what a request's id looks like. It allows more than Ask makes, because other programs have
// ids of their own.
var idRule = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// Get returns one request. Errors: NotFound, with the requests that wait.
func (q *Requests) Get(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	r, _, err := q.read(ctx, id)
	return r, err
}

// List returns all requests, oldest first. One that cannot be read is left out, and reported once by an
// event.
func (q *Requests) List(ctx context.Context) ([]muster.Request, error) {
	out, err := q.items.List(ctx)
	slices.SortFunc(out, func(a, b muster.Request) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out, err
}

// Pending returns the requests that wait, oldest first.
func (q *Requests) Pending(ctx context.Context) ([]muster.Request, error) {
	all, err := q.List(ctx)
	return slices.DeleteFunc(all, Final), err
}

// missing returns the error for an id that no request has. It names up to three requests that wait, those
// with the most similar ids first, because ids are often mistyped.
func (q *Requests) missing(ctx context.Context, id muster.RequestID) error {
	waiting, err := q.Pending(ctx)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return muster.Errorf(muster.NotFound, "there is no request %s, and none waits", id).
			WithHint("those that were answered:  muster requests --all")
	}
	typed := string(id[:min(len(id), 64)]) // no id is longer, and what a model sends may be
	slices.SortStableFunc(waiting, func(a, b muster.Request) int {
		return cmp.Compare(editdist.Distance(string(a.ID), typed), editdist.Distance(string(b.ID), typed))
	})
	var near []string
	for _, r := range waiting {
		near = append(near, fmt.Sprintf("%s (%s)", r.ID, title(r)))
	}
	return muster.Errorf(muster.NotFound, "there is no request %s; waiting: %s", id, text.List(near, 3)).
		WithHint("see all:  muster requests")
}

// decode and encode read and write a request's document.
var decode, encode = state.JSON("the request %s", func(r *muster.Request, key string) { r.ID = muster.RequestID(key) })
