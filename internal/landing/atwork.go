package landing

import (
	"context"
	"runtime"
)

// Hundreds of owners may complete their tasks at once. If each started its git then, all of them would be slow, and
// some would seem to hang. So only some owners work at a time; the others wait, as they do in the queue.

// maxAtWork returns how many owners may work with git at a time.
func maxAtWork() int { return max(8, 4*runtime.GOMAXPROCS(0)) }

// startWork waits until the owner may work with git. Whoever waits for something else calls endWork before.
func (a *attempt) startWork(ctx context.Context) error {
	if a.working {
		return nil
	}
	if _, err := lock(ctx, a.atWork); err != nil {
		return err
	}
	a.working = true
	return nil
}

// endWork lets another owner work.
func (a *attempt) endWork() {
	if a.working {
		a.working = false
		<-a.atWork
	}
}
