package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"muster/llm"
	"muster/llm/internal/wire"
)

// Limiter delays the requests of one account in this process: while the server says to wait, and while the limit of a
// minute, which the user or the server has set, is used up. It also knows which trouble they have in common. Its zero
// value delays nothing. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	until  time.Time
	err    error                  // why
	same   map[llm.Kind]time.Time // until when a trouble of the kind is the same one
	users  minute                 // what the user allows, of all models
	models map[string]*minute     // what the server allows, of each model
	factor float64                // how many tokens a request costs for each that it seems to have; 0: 1
}

// minute has what may be asked in a minute; nil is no limit.
type minute struct{ requests, tokens *rate.Limiter }

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
type Limiters struct{ byAccount sync.Map }

// Of returns the limiter of a model's account. All models that tell none share one.
func (l *Limiters) Of(m llm.Model) *Limiter {
	known, _ := l.byAccount.LoadOrStore(AccountOf(m).ID, new(Limiter))
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

// maxSpread is how much longer than the server says somebody waits at most, so that not all come at once.
const maxSpread = 10 * time.Second

// wait returns when a request may be made, with its estimated tokens. It ends with ctx, and where end is not zero, soon
// after that with context.DeadlineExceeded.
func (l *Limiter) wait(
	ctx context.Context, r llm.Request, a llm.Account, end time.Time, on func(time.Time, error),
) (estimate int, err error) {
	if !end.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, end.Add(maxSpread))
		defer cancel()
	}
	if err := l.waitUntilFree(ctx, on); err != nil {
		return 0, err
	}
	estimate, reserved, why := l.reserve(a, r)
	if pause := delay(reserved); pause > 0 {
		if pause >= time.Second {
			on(time.Now().Add(pause), why)
		}
		if err := sleepContext(ctx, pause); err != nil {
			for _, x := range reserved {
				x.Cancel()
			}
			return 0, err
		}
	}
	return estimate, l.waitUntilFree(ctx, on)
}

// waitUntilFree returns when nothing holds any more. Each caller waits a random time longer, so that they do not all
// come at once. The limit may have moved while it slept, so it then looks again.
func (l *Limiter) waitUntilFree(ctx context.Context, on func(time.Time, error)) error {
	for {
		until, why := l.Until()
		if until.IsZero() {
			return nil
		}
		left := time.Until(until)
		left += rand.N(min(max(left/10, time.Second), maxSpread))
		on(time.Now().Add(left), why)
		if err := sleepContext(ctx, left); err != nil {
			return err
		}
	}
}

// delay returns how long to wait until all reservations hold.
func delay(all []*rate.Reservation) (longest time.Duration) {
	for _, r := range all {
		longest = max(longest, r.Delay())
	}
	return longest
}

// reserve takes the place of a request in the limits of a minute, and says why it has to wait, if it has to.
func (l *Limiter) reserve(a llm.Account, r llm.Request) (estimate int, all []*rate.Reservation, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.minuteOf(a)
	why = llm.Errorf(llm.Limited, "the server's limit for a minute is used up")
	if a.Requests > 0 {
		why = llm.Errorf(llm.Limited, "you allow %d requests a minute", a.Requests)
	}
	all = reserveAll(m.requests, 1)
	if m.tokens == nil {
		return 0, all, why
	}
	estimate = 1 + int(l.perToken()*float64(wire.PromptSize(r)/4))
	tokens := reserveAll(m.tokens, estimate)
	if a.Tokens > 0 && delay(tokens) > delay(all) {
		why = llm.Errorf(llm.Limited, "you allow %d tokens a minute", a.Tokens)
	}
	return estimate, append(all, tokens...), why
}

// perToken returns how many tokens a request costs for each that it seems to have. The caller holds the lock.
func (l *Limiter) perToken() float64 {
	if l.factor == 0 {
		return 1
	}
	return l.factor
}

// minuteOf returns the limits for requests of an account. What the user allows counts in place of what the server says.
// The caller holds the lock.
func (l *Limiter) minuteOf(a llm.Account) (m minute) {
	if known := l.models[a.Model]; known != nil {
		m = *known
	}
	if a.Requests > 0 {
		l.users.requests = perMinute(l.users.requests, a.Requests, requestBursts)
		m.requests = l.users.requests
	}
	if a.Tokens > 0 {
		l.users.tokens = perMinute(l.users.tokens, a.Tokens, tokenBursts)
		m.tokens = l.users.tokens
	}
	return m
}

// How many bursts a minute's limit has. A burst may be used at once, and the rest is spread over the minute, so that
// nobody waits for a whole one.
const (
	requestBursts = 6
	tokenBursts   = 2
)

// perMinute returns the limiter that lets at most n by in any minute: a burst, and what comes evenly after it. It
// changes old, if there is one.
func perMinute(old *rate.Limiter, n, bursts int) *rate.Limiter {
	burst := max(1, n/bursts)
	limit := rate.Limit(float64(n-burst+1) / 60)
	if old == nil {
		return rate.NewLimiter(limit, burst)
	}
	if old.Limit() != limit || old.Burst() != burst {
		old.SetLimit(limit)
		old.SetBurst(burst)
	}
	return old
}

// reserveAll reserves n of a limiter, which may be more than it lets by at once; nil reserves nothing.
func reserveAll(from *rate.Limiter, n int) (all []*rate.Reservation) {
	for now := time.Now(); from != nil && n > 0; {
		part := min(n, from.Burst())
		all = append(all, from.ReserveN(now, part))
		n -= part
	}
	return all
}

// noteQuota notes what the answer to a request says of the server's limits. What is used up of them, and not by this
// process, is used by others.
func (l *Limiter) noteQuota(a llm.Account, answer llm.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests, tokens := minuteLimit(answer.Requests), minuteLimit(answer.Tokens)
	if requests == 0 && tokens == 0 {
		return
	}
	if l.models == nil {
		l.models = map[string]*minute{}
	}
	m := l.models[a.Model]
	if m == nil {
		m = &minute{}
		l.models[a.Model] = m
	}
	if requests > 0 {
		m.requests = perMinute(m.requests, requests, requestBursts)
		lowerTo(m.requests, answer.Requests.Remaining)
	}
	if tokens > 0 {
		m.tokens = perMinute(m.tokens, tokens, tokenBursts)
		lowerTo(m.tokens, answer.Tokens.Remaining)
	}
}

// minuteLimit returns the limit that a server says, 0 for none. One that takes longer to be reset is of a day, perhaps.
func minuteLimit(q llm.Quota) int {
	if q.Reset > 90*time.Second {
		return 0
	}
	return q.Limit
}

// lowerTo takes away what a limiter would let by at once beyond what remains.
func lowerTo(l *rate.Limiter, remaining int) {
	if lack := int(l.Tokens()) - max(remaining, 0); lack > 0 {
		l.AllowN(time.Now(), lack)
	}
}

// noteCost notes how a request has ended, and what it cost beside its estimate.
func (l *Limiter) noteCost(a llm.Account, estimate int, u llm.Usage, err error) {
	cost := u.Input + u.CacheWrite + u.CacheWriteLong + u.Output
	if e, ok := errors.AsType[*llm.Error](err); estimate == 0 || cost == 0 || ok && e.Kind == llm.Limited {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	reserveAll(l.minuteOf(a).tokens, cost-estimate)
	l.factor = min(max(l.perToken()*(0.7+0.3*float64(cost)/float64(estimate)), 0.01), 10)
}
