package retry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Limiter holds back everybody who shares a key while its provider says to wait.
// The zero value holds nobody back. Safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	until time.Time
	err   error // why
}

// Until is when the limiter lets go, and why it holds; the zero time if it does not.
func (l *Limiter) Until() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return time.Time{}, nil
	}
	return l.until, l.err
}

// hold holds everybody until t; an earlier t than before changes nothing.
func (l *Limiter) hold(t time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.After(l.until) {
		l.until, l.err = t, err
	}
}

// wait returns when nothing holds any more, each caller a little after the limit
// and not all at once. While it slept the limit may have moved: it looks again.
func (l *Limiter) wait(ctx context.Context, on func(time.Time, error)) error {
	for {
		until, why := l.Until()
		if until.IsZero() {
			return nil
		}
		left := time.Until(until)
		left += rand.N(min(max(left/10, time.Second), 10*time.Second))
		on(time.Now().Add(left), why)
		if err := sleep(ctx, left); err != nil {
			return err
		}
	}
}
