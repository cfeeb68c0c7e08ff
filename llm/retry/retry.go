// Package retry makes any llm.Model persistent. Wrap adds three layers: from the outside in, retries of
// transient failures, a rate limit that all in a process who use an account share (Limiters), and a watchdog that ends
// streams that have stalled. Fallback stands around several wrapped models, and asks the next one while one does not
// answer.
//
// There is one retry policy in the program, and it is here: adapters never retry. What was shown of a reply
// that failed is declared void before the next try, and a cancelled context always ends everything at once.
//
// Compatibility: Wrap, Limiter and the fields of Options stay. Fields may be added; their zero values keep
// today's behaviour.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"muster/internal/clock"
	"muster/llm"
)

// The defaults of Options.
const (
	DefaultPatience     = time.Hour
	DefaultMin          = time.Second
	DefaultMax          = time.Minute
	DefaultFirstTimeout = 5 * time.Minute
	DefaultIdleTimeout  = 5 * time.Minute
	DefaultReplyTimeout = time.Hour
)

// Options configure Wrap. Zero values mean the defaults.
type Options struct {
	// Patience is how long the troubles of one request are waited out, counted from the first of them. The
	// last try is made when that time is over. Negative means that nothing is waited out.
	Patience time.Duration

	// Overload is how long an overloaded or unreachable server is asked, at least three times, where another model can
	// take its place. Zero means as long as Patience lets.
	Overload time.Duration

	// Tries is how often a request is sent at most. Zero means as often as Patience lets.
	Tries int

	// Min and Max bound the backoff. Before try n+1 it waits a random time between half of Min doubled n-1
	// times and the whole of it, and never more than Max.
	Min, Max time.Duration

	// FirstTimeout is how long a reply may be silent before something of it can be shown; a local server
	// may have to load its model first. IdleTimeout is the same for the time after. Negative means forever.
	// See Wrap for what counts as a sign of life.
	FirstTimeout, IdleTimeout time.Duration

	// ReplyTimeout is how long one reply may take in all, however lively it is. Negative means forever, which is the
	// default where IdleTimeout is negative.
	ReplyTimeout time.Duration

	// Limiter is shared by all models that use the same key. Nil means one of its own.
	Limiter *Limiter

	// Account is whose limits the requests count against, for a model that wraps the one that knows it.
	Account llm.Account

	// OnWait is called before every wait, with its end and the reason.
	OnWait func(until time.Time, err error)

	// OnTrouble is called after OnWait with the first wait of a trouble. All who share the Limiter have a trouble in
	// common: one of them is told of it, once, until it has not been met for a while.
	OnTrouble func(until time.Time, err error)

	// OnNote is called with each Note of the model. Nil: notes are dropped.
	OnNote func(line string)
}

// Wrap returns m with retries, the rate limit and the watchdog.
//
// Overloaded, Unreachable, Limited and Incomplete are tried again after a backoff, or after the time in After
// where that is longer; a Malformed reply is asked for again once only. Limited holds back everybody who shares the
// Limiter. If something of the reply was shown, a Delta with Again declares it void first. All other errors are
// returned at once: ContextFull, BadRequest, Denied and Spent. So is the last error when Patience or the tries are
// used up.
//
// The watchdog watches what the model emits. The vendors' adapters emit an empty Delta for every piece of
// the stream that arrives, pings included; empty ones are not passed on. A stream that is silent too long
// is cancelled and counts as Incomplete. One that never ends is cancelled too, and is not asked again. The
// watchdog cannot end a model that ignores its context.
func Wrap(m llm.Model, o Options) llm.Model {
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Min, o.Max = cmp.Or(o.Min, DefaultMin), cmp.Or(o.Max, DefaultMax)
	o.FirstTimeout = cmp.Or(o.FirstTimeout, DefaultFirstTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	if o.ReplyTimeout == 0 && o.IdleTimeout > 0 { // who lets a model be silent forever lets it speak forever
		o.ReplyTimeout = DefaultReplyTimeout
	}
	o.Limiter = cmp.Or(o.Limiter, new(Limiter))
	if o.OnWait == nil {
		o.OnWait = func(time.Time, error) {}
	}
	if o.OnTrouble == nil {
		o.OnTrouble = func(time.Time, error) {}
	}
	if o.OnNote == nil {
		o.OnNote = func(string) {}
	}
	o.Account = cmp.Or(o.Account, AccountOf(m))
	return &retrier{m, o}
}

// retrier implements llm.Model.
type retrier struct {
	model llm.Model
	o     Options
}

// Reply implements llm.Model.
func (s *retrier) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	shown := false
	show := func(d llm.Delta) {
		if d == (llm.Delta{Part: d.Part}) {
			return
		}
		shown = !d.Again
		if emit != nil {
			emit(d)
		}
	}
	met := trouble{}
	isNew := false // the trouble, and nobody was told of it
	tell := func(until time.Time, err error) {
		if s.o.OnWait(until, err); isNew {
			isNew = false
			s.o.OnTrouble(until, err)
		}
	}
	for failures := 1; ; failures++ {
		estimate, err := s.o.Limiter.wait(ctx, r, s.o.Account, met.end(s.o.Patience), tell)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return llm.Reply{}, gaveUp(met.last, time.Since(met.began))
		} else if err != nil {
			return llm.Reply{}, err
		}
		reply, err := s.replyWatched(ctx, r, show)
		s.o.Limiter.noteCost(s.o.Account, estimate, reply.Usage, err)
		if err == nil || ctx.Err() != nil || failures == s.o.Tries || !met.mayPass(err) {
			return reply, err
		}
		left := time.Until(met.end(s.patience(met.last, failures)))
		if left <= 0 {
			return reply, gaveUp(met.last, time.Since(met.began))
		}
		if shown {
			show(llm.Delta{Again: true})
		}
		pause := min(max(s.backoff(failures), met.last.After), left)
		isNew = s.o.Limiter.isNew(met.last.Kind, time.Now().Add(pause))
		if met.last.Kind == llm.Limited { // all who share the limiter wait, and this one with them
			s.o.Limiter.holdUntil(time.Now().Add(pause), err)
			continue
		}
		tell(time.Now().Add(pause), err)
		if err := sleepContext(ctx, pause); err != nil {
			return llm.Reply{}, err
		}
	}
}

// patience returns how long a trouble is waited out after so many failures.
func (s *retrier) patience(e *llm.Error, failures int) time.Duration {
	isOut := e.Kind == llm.Overloaded || e.Kind == llm.Unreachable
	switch {
	case !isOut || s.o.Overload == 0 || s.o.Overload > s.o.Patience:
		return s.o.Patience
	case e.After > s.o.Overload: // it would not be asked three times
		return 0
	case failures < 3:
		return s.o.Patience
	}
	return s.o.Overload
}

// trouble is what one request has met so far.
type trouble struct {
	began     time.Time // zero: nothing
	last      *llm.Error
	malformed int // replies
}

// end returns when patience with the trouble ends, or the zero time.
func (t *trouble) end(patience time.Duration) time.Time {
	if t.began.IsZero() {
		return time.Time{}
	}
	return t.began.Add(patience)
}

// mayPass notes an error and reports whether it may pass by itself. A reply that makes no sense does so once.
func (t *trouble) mayPass(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || !passes(e.Kind) {
		return false
	}
	if t.last = e; t.began.IsZero() {
		t.began = time.Now()
	}
	if e.Malformed {
		t.malformed++
	}
	return !e.Malformed || t.malformed == 1
}

// passes reports whether a trouble may pass by itself.
func passes(k llm.Kind) bool {
	return k == llm.Overloaded || k == llm.Unreachable || k == llm.Limited || k == llm.Incomplete
}

// gaveUp is the error of a trouble that did not pass. Its kind stays, and it gives no time to wait.
func gaveUp(e *llm.Error, after time.Duration) *llm.Error {
	if after < time.Second { // nothing was waited out
		return e
	}
	return &llm.Error{Kind: e.Kind, Status: e.Status,
		Err: fmt.Errorf("it did not pass within %s: %w", clock.Duration(after.Round(time.Second)), e.Err)}
}

// backoff returns a random wait after n failures, between half of the bound and the bound, so that agents that
// failed together do not come back together.
func (s *retrier) backoff(n int) time.Duration {
	bound := s.o.Max
	if n := n - 1; n < 32 && s.o.Min<<n < bound && s.o.Min<<n > 0 {
		bound = s.o.Min << n
	}
	return bound - rand.N(bound/2+1)
}

// sleepContext waits for d. If ctx ends first, it returns the cause.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// replyWatched asks the model once, and cancels it when it is silent for too long.
func (s *retrier) replyWatched(
	ctx context.Context, r llm.Request, emit func(llm.Delta),
) (llm.Reply, error) {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The model emits from one goroutine, and nothing after it has returned, so patience needs no lock.
	patience := s.o.FirstTimeout
	bark := time.AfterFunc(timerDuration(patience), func() { cancel(errSilent) })
	defer bark.Stop()
	end := time.AfterFunc(timerDuration(cmp.Or(s.o.ReplyTimeout, -1)), func() { cancel(errEndless) })
	defer end.Stop()
	reply, err := s.model.Reply(watched, r, func(d llm.Delta) {
		if d.Text != "" || d.Think != "" {
			patience = s.o.IdleTimeout
		}
		bark.Reset(timerDuration(patience))
		if d.Answer != nil {
			s.o.Limiter.noteQuota(s.o.Account, *d.Answer)
			return
		}
		if d.Note != "" {
			s.o.OnNote(d.Note)
			return
		}
		emit(d)
	})
	if err == nil || ctx.Err() != nil {
		return reply, err
	}
	switch cause := context.Cause(watched); {
	case errors.Is(cause, errSilent):
		return llm.Reply{}, llm.Errorf(llm.Incomplete, "the model was silent for %s", clock.Duration(patience))
	case errors.Is(cause, errEndless):
		return llm.Reply{}, llm.Errorf(llm.BadRequest, "the model has not ended its reply after %s, and was cut off: "+
			"see what answers there", clock.Duration(s.o.ReplyTimeout))
	}
	return reply, err
}

// errSilent is the cause with which a silent reply is cancelled.
var errSilent = errors.New("the model is silent")

// errEndless is the cause with which a reply is cancelled that does not end.
var errEndless = errors.New("the reply does not end")

// timerDuration returns d for a timer; negative means as long as a timer can be.
func timerDuration(d time.Duration) time.Duration {
	if d < 0 {
		return math.MaxInt64
	}
	return d
}
