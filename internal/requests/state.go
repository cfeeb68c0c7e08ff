package requests

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"muster"
)

// Final reports whether nothing can happen to r any more. A request is pending once, and final ever after:
// its first decision stands.
func Final(r muster.Request) bool { return r.Status != muster.RequestPending }

// How long a request of a kind waits. A plan waits as long as it takes.
const (
	ShutdownWait   = 30 * time.Second
	PermissionWait = 10 * time.Minute
)

// waits is how long a request of a kind waits before it ends by itself; 0 is for ever.
var waits = map[muster.RequestKind]time.Duration{
	muster.AskShutdown: ShutdownWait, muster.AskPermission: PermissionWait,
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
