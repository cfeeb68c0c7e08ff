package retry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Limiter holds back everybody who shares a key while the provider says to wait. Its zero value holds
// nobody back. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	until time.Time
	err   error // why
}

// Until returns when the limiter lets go and why it holds, or the zero time if it does not.
func (l *Limiter) Until() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return time.Time{}, nil
	}
	return l.until, l.err
}

// holdUntil holds everybody until t. It never shortens a wait.
func (l *Limiter) holdUntil(t time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.After(l.until) {
		l.until, l.err = t, err
	}
}

// wait returns when nothing holds any more. Each caller waits a random time longer, so that they do not all
// come at once. The limit may have moved while it slept, so it then looks again.
func (l *Limiter) wait(ctx context.Context, on func(time.Time, error)) error {
	for {
		until, why := l.Until()
		if until.IsZero() {
			return nil
		}
		left := time.Until(until)
		left += rand.N(min(max(left/10, time.Second), 10*time.Second))
		on(time.Now().Add(left), why)
		if err := sleepContext(ctx, left); err != nil {
			return err
		}
	}
}
