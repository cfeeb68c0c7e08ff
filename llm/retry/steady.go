// Package steady makes any llm.Model hold out: one retry policy, a rate limit
// shared by all agents of a process, and a watchdog over streams that stall. From
// the outside in: retry, limit, watchdog, the model.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"muster/llm"
)

// The defaults of Options.
const (
	DefaultTries        = 8
	DefaultMin          = time.Second
	DefaultMax          = time.Minute
	DefaultFirstTimeout = 5 * time.Minute
	DefaultIdleTimeout  = 90 * time.Second
)

// Options of Wrap. The zero value has the defaults.
type Options struct {
	// Tries is how often a request is asked at most when the provider is overloaded
	// or its answer breaks off. A rate limit that says when to come back is waited
	// for up to four times as often.
	Tries int

	// Min and Max bound the backoff: before try n+1 it waits a random time of at
	// most Min doubled n times, and never more than Max.
	Min, Max time.Duration

	// FirstTimeout is how long a reply may be silent before something of it can be
	// shown (a local server may load its model first), IdleTimeout how long after
	// that. Negative is for ever. See Wrap for what counts as a sound.
	FirstTimeout, IdleTimeout time.Duration

	// Limiter is shared by all who use the same key. Nil is one of its own.
	Limiter *Limiter

	// OnWait is told of every wait: until when, and what went wrong.
	OnWait func(until time.Time, err error)
}

// Wrap returns m made steady.
//
// Asked again are Overloaded and Incomplete, with backoff, and Limited with After.
// Before that, if something of the reply was shown, a Delta with Again says that
// it is void. Everything else is returned as it is, at once: ContextFull,
// BadRequest, Denied, Spent, the last error when the tries are used up, and
// Limited without After, which is a spend limit.
//
// The watchdog hears what the model emits; the vendors' adapters emit an empty
// Delta for every piece of the stream that arrives, pings too. Empty ones end
// here. A stream that goes silent is cancelled, and is Incomplete. It cannot end a
// model that does not heed its context.
func Wrap(m llm.Model, o Options) llm.Model {
	set(&o.Tries, DefaultTries)
	set(&o.Min, DefaultMin)
	set(&o.Max, DefaultMax)
	set(&o.FirstTimeout, DefaultFirstTimeout)
	set(&o.IdleTimeout, DefaultIdleTimeout)
	if o.Limiter == nil {
		o.Limiter = new(Limiter)
	}
	if o.OnWait == nil {
		o.OnWait = func(time.Time, error) {}
	}
	return &steady{m, o}
}

func set[T comparable](to *T, d T) {
	var zero T
	if *to == zero {
		*to = d
	}
}

type steady struct {
	model llm.Model
	o     Options
}

// Reply implements llm.Model.
func (s *steady) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
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
	for failures, limits := 0, 0; ; {
		if err := s.o.Limiter.wait(ctx, s.o.OnWait); err != nil {
			return llm.Reply{}, err
		}
		reply, err := s.watch(ctx, r, show)
		if err == nil {
			return reply, nil
		}
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || ctx.Err() != nil {
			return reply, err
		}
		var pause time.Duration
		switch {
		case e.Kind == llm.Limited && e.After > 0:
			if limits++; limits >= 4*s.o.Tries {
				return reply, err
			}
			s.o.Limiter.hold(time.Now().Add(e.After), err)
		case e.Kind == llm.Overloaded, e.Kind == llm.Incomplete:
			if failures++; failures >= s.o.Tries {
				return reply, err
			}
			pause = max(s.backoff(failures), e.After)
		default:
			return reply, err
		}
		if shown {
			show(llm.Delta{Again: true})
		}
		if pause > 0 {
			s.o.OnWait(time.Now().Add(pause), err)
			if err := sleep(ctx, pause); err != nil {
				return llm.Reply{}, err
			}
		}
	}
}

// backoff is the wait after n failures: anything from nothing to the bound, so
// that agents who failed together do not come back together.
func (s *steady) backoff(n int) time.Duration {
	bound := s.o.Max
	if n := n - 1; n < 32 && s.o.Min<<n < bound && s.o.Min<<n > 0 {
		bound = s.o.Min << n
	}
	return rand.N(bound + 1)
}

// sleep waits for d, or for the end of ctx, whose cause it returns.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
