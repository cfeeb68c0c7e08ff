package retry

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/durable"
	"muster/llm"
)

// Limiter holds back everybody who shares a key while the provider says to wait, and knows which trouble they have in
// common. Its zero value holds nobody back. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	until time.Time
	err   error                  // why
	same  map[llm.Kind]time.Time // until when a trouble of the kind is the same one
	pacer *pacer                 // of the account; nil: it is not known
}

// quiet is how long a trouble must not be met before the next one of its kind is another.
const quiet = 5 * time.Minute

// isNew reports whether a trouble is not the one that was met last, and notes until when it is waited out.
func (l *Limiter) isNew(k llm.Kind, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isNew := time.Now().After(l.same[k])
	if l.same == nil {
		l.same = map[llm.Kind]time.Time{}
	}
	if end := until.Add(quiet); end.After(l.same[k]) {
		l.same[k] = end
	}
	return isNew
}

// Limiters has a Limiter for each account, so that the limit of one holds nobody of another back. Its zero value is
// ready for use. It is safe for concurrent use.
type Limiters struct {
	// Dir is where the processes of a machine share what they know of the limits of their accounts, in a small file for
	// each. "" shares nothing. Set it before the first use.
	Dir string

	byAccount sync.Map
	files     atomic.Pointer[durable.Files]
	window    time.Duration // 0: a minute
}

// Of returns the limiter of a model's account. All models that tell none share one limiter, which only knows until when
// a server wants to be left alone.
func (l *Limiters) Of(m llm.Model) *Limiter {
	id := AccountOf(m).ID
	if known, ok := l.byAccount.Load(id); ok {
		return known.(*Limiter)
	}
	limiter := new(Limiter)
	if id != "" {
		l.files.CompareAndSwap(nil, durable.New(durable.OS{}))
		limiter.pacer = newPacer(l.files.Load(), l.Dir, id, cmp.Or(l.window, time.Minute))
	}
	known, _ := l.byAccount.LoadOrStore(id, limiter)
	return known.(*Limiter)
}

// AccountOf returns the account that a model tells, or the zero Account.
func AccountOf(m llm.Model) llm.Account {
	if a, ok := m.(interface{ Account() llm.Account }); ok {
		return a.Account()
	}
	return llm.Account{}
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

// wait returns when a request may be made, with its ticket. It ends with ctx, and at end if that is not zero.
func (l *Limiter) wait(
	ctx context.Context, r llm.Request, a llm.Account, end time.Time, on func(time.Time, error),
) (*ticket, error) {
	if l.pacer == nil {
		return nil, l.waitForAll(ctx, on)
	}
	if !end.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	t := l.pacer.ticket(a, r)
	return t, l.pacer.wait(ctx, t, on)
}

// waitForAll returns when nothing holds any more. Each caller waits a random time longer, so that they do not all
// come at once. The limit may have moved while it slept, so it then looks again.
func (l *Limiter) waitForAll(ctx context.Context, on func(time.Time, error)) error {
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

// answered notes an answer to a request.
func (l *Limiter) answered(ctx context.Context, t *ticket, a llm.Answer) {
	if l.pacer != nil {
		l.pacer.answered(ctx, t, a)
	}
}

// ended notes how a request has ended, and what it cost.
func (l *Limiter) ended(ctx context.Context, t *ticket, u llm.Usage, err error) {
	if l.pacer != nil {
		l.pacer.ended(ctx, t, u, err)
	}
}
