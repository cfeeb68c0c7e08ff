package landing

import (
	"context"
	"runtime"
	"time"
)

var FileList = fileList

// Waiting returns how many owners wait for a decision about their landing.
func Waiting(l *Lander) int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.present
}

var Dependants = dependants

// EndDrainer leaves the queue as when its last owner has left and its drainer has not noticed that yet. It does when
// somebody waits.
func EndDrainer(ctx context.Context, l *Lander, why error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	giveUp(why)
	l.queue.drains, l.queue.giveUp = true, giveUp
	go func() {
		for Waiting(l) == 0 {
			runtime.Gosched()
		}
		drain(ctx, l)
	}()
}

// AwaitDrainer waits until no landing or check of the Lander is under way.
func AwaitDrainer(ctx context.Context, l *Lander) error {
	unlock, err := lock(ctx, l.slot)
	if err == nil {
		unlock()
	}
	return err
}

// SetCheckTook lets the last check of a stack have taken so long.
func SetCheckTook(l *Lander, d time.Duration) { l.checkTook.Store(int64(d)) }
