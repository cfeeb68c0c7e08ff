package requests

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"muster"
)

// verb is what can happen to a request.
type verb string

const (
	approve verb = "approve"
	reject  verb = "reject"
	expire  verb = "expire"
	cancel  verb = "cancel"
)

// next is the state machine of every request: the verb moves a pending one to a final status. A final one is Held.
func next(s muster.RequestStatus, v verb) (muster.RequestStatus, error) {
	if s != muster.RequestPending {
		return s, muster.Errorf(muster.Held, "the request is %s already", s)
	}
	switch v {
	case approve:
		return muster.RequestApproved, nil
	case reject:
		return muster.RequestRejected, nil
	case expire:
		return muster.RequestExpired, nil
	case cancel:
		return muster.RequestCancelled, nil
	}
	return s, muster.Errorf(muster.Invalid, "nothing is called %q that could happen to a request", string(v))
}

// Final reports whether nothing can happen to r any more.
func Final(r muster.Request) bool { return r.Status != muster.RequestPending }

// How long a request of a kind waits. A plan waits as long as it takes.
const (
	ShutdownWait   = 30 * time.Second
	PermissionWait = 10 * time.Minute
)

// deadline returns when a request of the kind that is made now ends by itself; 0 is never.
func deadline(k muster.RequestKind, now time.Time) float64 {
	switch k {
	case muster.AskShutdown:
		return muster.UnixTime(now.Add(ShutdownWait))
	case muster.AskPermission:
		return muster.UnixTime(now.Add(PermissionWait))
	}
	return 0
}

// late returns what happens to a request of the kind at its deadline. A permission that nobody gave counts as refused.
func late(k muster.RequestKind) verb {
	if k == muster.AskPermission {
		return reject
	}
	return expire
}

// PlanHash returns a digest of a plan's text. An approval holds for the text with this digest only.
func PlanHash(plan string) string {
	sum := sha256.Sum256([]byte(plan))
	return hex.EncodeToString(sum[:])
}

// Approved reports whether the task may be worked on under the claim with the fence. The newest plan for the claim that
// was not cancelled must be approved, and its text must be the one that was approved. A newer plan replaces an older
// one, even one that is approved.
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
